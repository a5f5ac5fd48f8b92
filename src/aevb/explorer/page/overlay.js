// What is drawn above the datapoints: axes, q(z|x) and its draws, the path from A to B, and z.

import { colour, fitted, written } from "./dom.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./plane.js").Frame} Frame */

export class Overlay {
  /**
   * @param {App} app
   * @param {HTMLCanvasElement} canvas
   */
  constructor(app, canvas) {
    this.app = app;
    this.canvas = canvas;
  }

  /** @param {Frame} frame */
  draw(frame) {
    const { app } = this;
    const drawing = fitted(this.canvas, frame.size, frame.size);
    this.drawAxes(drawing, frame);
    if (app.areSamplesShown) for (const z of app.samples) this.dot(drawing, frame, z, colour("ink"), 3.4);
    if (app.values.isPathShown) this.drawPath(drawing, frame);
    if (app.q) this.drawPosterior(drawing, frame);
    for (const z of app.particles) this.dot(drawing, frame, z, colour("leaf"), 5);
    const [x, y] = this.at(app.values.z, frame);
    for (const [radius, width, tint] of /** @type {[number, number, string][]} */ ([
      [10, 5, colour("card")],
      [10, 2.5, colour("accent")],
    ])) {
      drawing.beginPath();
      drawing.arc(x, y, radius, 0, 2 * Math.PI);
      drawing.lineWidth = width;
      drawing.strokeStyle = tint;
      drawing.stroke();
    }
    drawing.beginPath();
    drawing.arc(x, y, 2.4, 0, 2 * Math.PI);
    drawing.fillStyle = colour("accent");
    drawing.fill();
  }

  /**
   * Tick labels at the edges, and circles at the prior's standard deviations.
   * @param {CanvasRenderingContext2D} drawing
   * @param {Frame} frame
   */
  drawAxes(drawing, frame) {
    const { app } = this;
    const { first, second } = app.values;
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5].find((size) => size * frame.unit > 46) ?? 5;
    const digits = step < 0.1 ? 2 : step < 1 ? 1 : 0;
    drawing.font = "11px system-ui, sans-serif";
    drawing.lineJoin = "round";
    const write = (/** @type {string} */ text, /** @type {number} */ x, /** @type {number} */ y) => {
      drawing.lineWidth = 3.5;
      drawing.strokeStyle = colour("card");
      drawing.strokeText(text, x, y);
      drawing.fillStyle = colour("faint");
      drawing.fillText(text, x, y);
    };
    const most = frame.size / frame.unit;
    for (let k = Math.ceil(frame.left / step); k * step < frame.left + most; k++) {
      const [x] = frame.place(k * step, 0);
      if (x > 26 && x < frame.size - 50) write(written(k * step, digits), x - 4, frame.size - 7);
    }
    for (let k = Math.ceil(frame.bottom / step); second !== first && k * step < frame.bottom + most; k++) {
      const [, y] = frame.place(0, k * step);
      if (y > 34 && y < frame.size - 26) write(written(k * step, digits), 7, y + 4);
    }
    write(app.basis.names[first].split(" ")[0] + " →", frame.size - 36, frame.size - 7);
    if (second !== first) write("↑ " + app.basis.names[second].split(" ")[0], 7, 18);
    const p = second === first ? null : app.priorHere();
    if (!p) return;
    drawing.setLineDash([2, 5]);
    for (const scale of [1, 2, 3]) {
      this.traceEllipse(drawing, frame, p, scale);
      drawing.lineWidth = 1;
      drawing.strokeStyle = colour("faint");
      drawing.stroke();
    }
    drawing.setLineDash([]);
  }

  /**
   * Begin a path: where a Gaussian is some standard deviations from its mean.
   * @param {CanvasRenderingContext2D} drawing
   * @param {Frame} frame
   * @param {import("./model.js").Gaussian} gaussian (J,)
   * @param {number} scale
   */
  traceEllipse(drawing, frame, { mu, sigma }, scale) {
    const { basis } = this.app;
    const { first, second, view } = this.app.values;
    const c = basis.coordinates(mu);
    const { l11, l21, l22 } = basis.factor(sigma, first, second);
    drawing.beginPath();
    for (let k = 0; k <= 64; k++) {
      const angle = (2 * Math.PI * k) / 64;
      const [u, v] = [scale * Math.cos(angle), scale * Math.sin(angle)];
      const up = second === first ? view.y + v * 0.12 * view.span : c[second] + l21 * u + l22 * v;
      drawing.lineTo(...frame.place(c[first] + l11 * u, up));
    }
  }

  /**
   * @param {CanvasRenderingContext2D} drawing
   * @param {Frame} frame
   */
  drawPosterior(drawing, frame) {
    const { app } = this;
    if (!app.q) return;
    for (const [scale, alpha] of [
      [2, 0.16],
      [1, 0.34],
    ]) {
      this.traceEllipse(drawing, frame, app.q, scale);
      drawing.globalAlpha = alpha;
      drawing.fillStyle = colour("warm");
      drawing.fill();
      drawing.globalAlpha = 1;
      drawing.lineWidth = scale === 1 ? 2 : 1.2;
      drawing.strokeStyle = colour("warm");
      drawing.stroke();
    }
    const { J, draws } = app;
    const { l11 } = app.basis.factor(app.q.sigma, app.values.first, app.values.second);
    if (draws && l11 * frame.unit > 5) {
      for (let l = 0; l * J < draws.z.length; l++)
        this.dot(drawing, frame, draws.z.subarray(l * J, (l + 1) * J), colour("warm"), 2.6);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} drawing
   * @param {Frame} frame
   */
  drawPath(drawing, frame) {
    const { from, to } = this.app.values;
    const [start, end] = [this.at(from, frame), this.at(to, frame)];
    drawing.beginPath();
    drawing.moveTo(...start);
    drawing.lineTo(...end);
    drawing.lineWidth = 4;
    drawing.strokeStyle = colour("card");
    drawing.stroke();
    drawing.lineWidth = 2;
    drawing.strokeStyle = colour("ink");
    drawing.stroke();
    for (const [name, [x, y]] of /** @type {[string, [number, number]][]} */ ([
      ["A", start],
      ["B", end],
    ])) {
      drawing.beginPath();
      drawing.arc(x, y, 9, 0, 2 * Math.PI);
      drawing.fillStyle = colour("ink");
      drawing.fill();
      drawing.fillStyle = colour("card");
      drawing.font = "bold 11px system-ui, sans-serif";
      drawing.fillText(name, x - 4, y + 4);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} drawing
   * @param {Frame} frame
   * @param {Float32Array} z
   * @param {string} tint
   * @param {number} radius
   */
  dot(drawing, frame, z, tint, radius) {
    const [x, y] = this.at(z, frame);
    drawing.beginPath();
    drawing.arc(x, y, radius, 0, 2 * Math.PI);
    drawing.fillStyle = tint;
    drawing.fill();
    drawing.lineWidth = 1.2;
    drawing.strokeStyle = colour("card");
    drawing.stroke();
  }

  /**
   * The position of a z on the screen.
   * @param {Float32Array} z
   * @param {Frame} frame
   */
  at(z, frame) {
    const { first, second, view } = this.app.values;
    const c = this.app.basis.coordinates(z);
    return frame.place(c[first], second === first ? view.y : c[second]);
  }
}
