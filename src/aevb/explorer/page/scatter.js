// The datapoints on the plane, at their codes.

import { colour, fitted } from "./dom.js";
import { labelColour } from "./palette.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./plane.js").Frame} Frame */

export class Scatter {
  /**
   * @param {App} app
   * @param {HTMLCanvasElement} canvas
   */
  constructor(app, canvas) {
    this.app = app;
    this.canvas = canvas;
    this.xs = new Float32Array(app.numPoints);
    this.ys = new Float32Array(app.numPoints);
  }

  /** @param {Frame} frame */
  draw(frame) {
    const { app, xs, ys } = this;
    const { first, second, isDataShown, label } = app.values;
    const { labels, values } = app.colouring();
    const drawing = fitted(this.canvas, frame.size, frame.size);
    const radius = Math.min(Math.max(90 / Math.sqrt(app.numPoints), 2.3), 4.5);
    const edge = colour("card");
    for (let i = 0; i < app.numPoints; i++) {
      const c = app.basis.coordinates(app.codes.subarray(i * app.J, (i + 1) * app.J));
      // With one latent variable there is no second coordinate: the points are spread over the height.
      const up =
        second === first
          ? (((i * 0.618034) % 1) - 0.5) * 1.6 * (frame.size / 2 / frame.unit) +
            frame.bottom +
            frame.size / 2 / frame.unit
          : c[second];
      [xs[i], ys[i]] = frame.place(c[first], up);
    }
    if (!isDataShown) return;
    for (const isPicked of label >= 0 ? [false, true] : [true]) {
      for (let i = 0; i < app.numPoints; i++) {
        const value = values ? values[i] : NaN;
        if (label >= 0 && (value === label) !== isPicked) continue;
        drawing.globalAlpha = isPicked ? 0.95 : 0.12;
        drawing.beginPath();
        drawing.arc(xs[i], ys[i], isPicked && label >= 0 ? radius + 0.6 : radius, 0, 2 * Math.PI);
        drawing.fillStyle = labelColour(labels, value);
        drawing.fill();
        drawing.lineWidth = 0.7;
        drawing.strokeStyle = edge;
        drawing.stroke();
      }
    }
    drawing.globalAlpha = 1;
  }

  /**
   * The datapoint nearest to a position on the screen, or -1.
   * @param {number} x
   * @param {number} y
   * @param {number} reach
   */
  nearest(x, y, reach) {
    const { label, isDataShown } = this.app.values;
    const { values } = this.app.colouring();
    let [found, best] = [-1, reach * reach];
    if (!isDataShown && reach < Infinity) return -1;
    for (let i = 0; i < this.xs.length; i++) {
      const square = (this.xs[i] - x) ** 2 + (this.ys[i] - y) ** 2;
      const isShown = label < 0 || (values && values[i] === label);
      if (square < best && isShown) [found, best] = [i, square];
    }
    return found;
  }
}
