// The decoded manifold behind the plane: the decoder's output at every point.
//
// It is drawn coarsely first and then refined, a few milliseconds per frame, so that it never blocks the page.

import { context, make } from "./dom.js";
import { labelColour } from "./palette.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./plane.js").Frame} Frame */
/** @typedef {{ column: number, row: number, stride: number }} Cell */

const BUDGET = 9; // milliseconds per frame
const BATCH = 8;

export class Backdrop {
  /**
   * @param {App} app
   * @param {HTMLCanvasElement} canvas
   */
  constructor(app, canvas) {
    this.app = app;
    this.canvas = canvas;
    this.tile = make("canvas");
    /** @type {Cell[]} */
    this.cells = [];
    this.isRunning = false;
    /** @type {Frame | null} */
    this.frame = null;
    this.key = "";
  }

  /**
   * Redraw, if anything visible has changed.
   * @param {Frame} frame
   * @param {boolean} force redraw in any case, after a change of colours
   */
  show(frame, force = false) {
    const { app } = this;
    const { basis, level, isBelowDrawn, belowSeed, first, second, z, colour, isManifoldShown } = app.values;
    const c = app.basis.coordinates(z);
    const rest = Array.from(c.subarray(0, app.numShown))
      .filter((_, k) => k !== first && k !== second)
      .map((value) => value.toFixed(3));
    const { left, bottom, unit, size } = frame;
    const below = isBelowDrawn ? belowSeed : 0;
    const key = [basis, level, below, first, second, left, bottom, unit, size, isManifoldShown, colour, ...rest].join();
    if (key === this.key && !force) return;
    this.key = key;
    this.frame = frame;
    const side = colour >= 0 ? 12 : app.painter.isImage ? 30 : 62;
    const count = Math.min(Math.max(4 * Math.round(size / side / 4), 8), colour >= 0 ? 48 : 24);
    this.step = size / count;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    const pixels = Math.round(size * ratio);
    if (this.canvas.width !== pixels) Object.assign(this.canvas, { width: pixels, height: pixels });
    this.ratio = pixels / size;
    this.cells = isManifoldShown ? cellsOf(count) : [];
    if (!isManifoldShown) context(this.canvas).clearRect(0, 0, pixels, pixels);
    if (!this.isRunning && this.cells.length) {
      this.isRunning = true;
      this.work();
    }
  }

  work() {
    const end = performance.now() + BUDGET;
    do this.decodeSome(this.cells.splice(0, BATCH));
    while (this.cells.length && performance.now() < end);
    this.isRunning = this.cells.length > 0;
    if (this.isRunning) requestAnimationFrame(() => this.work());
  }

  /** @param {Cell[]} cells */
  decodeSome(cells) {
    const { app, frame, step = 1, ratio = 1 } = this;
    if (!frame || !cells.length) return;
    const { first, second, z } = app.values;
    const c = app.basis.coordinates(z);
    const places = new Float32Array(cells.length * app.J);
    cells.forEach(({ column, row, stride }, i) => {
      c[first] = frame.left + ((column + stride / 2) * step) / frame.unit;
      if (second !== first) c[second] = frame.bottom + (frame.size - (row + stride / 2) * step) / frame.unit;
      places.set(app.basis.latent(c), i * app.J);
    });
    const p = app.model.decode(app.settled(places));
    const drawing = context(this.canvas);
    cells.forEach(({ column, row, stride }, i) => {
      const size = stride * step;
      const [x, y] = [Math.round(column * step * ratio), Math.round(row * step * ratio)];
      const [w, h] = [Math.round((column + stride) * step * ratio) - x, Math.round((row + stride) * step * ratio) - y];
      drawing.clearRect(x, y, w, h);
      if (app.values.colour >= 0) return this.fill(drawing, p, i, [x, y, w, h]);
      Object.assign(this.tile.dataset, { width: String(size), height: String(size) });
      app.painter.paint(this.tile, app.model.mean(p, i));
      const { aspect, isImage } = app.painter;
      const narrow = isImage ? Math.min(aspect, 1 / aspect) : 0.86;
      const [tw, th] = isImage && aspect < 1 ? [w * narrow, h] : isImage ? [w, h * narrow] : [w * narrow, h * narrow];
      drawing.drawImage(this.tile, x + (w - tw) / 2, y + (h - th) / 2, tw, th);
    });
  }

  /**
   * Fill a cell with the colour of what is expected there of the column that colours the plane.
   * @param {CanvasRenderingContext2D} drawing
   * @param {import("./model.js").AnyLikelihood} p
   * @param {number} s
   * @param {[number, number, number, number]} cell
   */
  fill(drawing, p, s, cell) {
    const { app } = this;
    const i = app.values.colour;
    const field = app.fields[i];
    const shares = field.hasLevels ? app.model.probabilities(p, s, i) : null;
    const best = shares ? shares.indexOf(Math.max(...shares)) : field.shown(app.model.meanColumn(p, s, i));
    drawing.fillStyle = labelColour(app.colouring().labels, best);
    // The more certain, the stronger.
    drawing.globalAlpha = shares ? 0.1 + 0.5 * Math.max((shares[best] * shares.length - 1) / (shares.length - 1), 0) : 0.6;
    drawing.fillRect(...cell);
    drawing.globalAlpha = 1;
  }
}

/**
 * The cells of a square of count x count, coarse ones first, each from the middle outwards.
 * @param {number} count
 * @returns {Cell[]}
 */
function cellsOf(count) {
  return [4, 2, 1].flatMap((stride) => {
    const cells = [];
    for (let row = 0; row < count; row += stride) {
      for (let column = 0; column < count; column += stride) cells.push({ column, row, stride });
    }
    const middle = (count - stride) / 2;
    const distance = (/** @type {Cell} */ cell) => Math.hypot(cell.column - middle, cell.row - middle);
    return cells.sort((one, other) => distance(one) - distance(other));
  });
}
