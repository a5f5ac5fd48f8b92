// The input of tables: one line per column, with what is known and what the model expects; with many columns of
// numbers, a line to draw.

import { readCells, isGap } from "./csv.js";
import { colour, find, fitted, make, writtenVector } from "./dom.js";
import { addFieldRow } from "./field_rows.js";
import { Prediction } from "./prediction.js";
import { newSeed } from "./random.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./field_rows.js").FieldRow} FieldRow */

export class Table {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.place = find("columns");
    this.place.hidden = false;
    /** @type {FieldRow[]} */
    this.lines = [];
    /** @type {HTMLCanvasElement | null} */
    this.curve = null;
    if (app.isListed) {
      this.lines = app.fields.map((field, i) =>
        addFieldRow(field, this.place, { set: (u) => this.change(i, u), release: () => this.release(i) }),
      );
    } else this.addCurve();
    find("draw-row").addEventListener("click", () => app.drawRow(newSeed()));
    find("back").addEventListener("click", () => app.setInput({ missing: app.values.missing.slice() }));
    app.state.on(["x", "missing", "z", "isMoved", "epsilonSeed"], () => this.show());
  }

  /**
   * Fix a column.
   * @param {number} i
   * @param {number} u
   */
  change(i, u) {
    const { app } = this;
    const x = (app.values.x ?? app.columns.means).slice();
    const missing = app.values.missing.slice();
    x[i] = u;
    missing[i] = 0;
    app.fields.forEach(({ facts: { about } }, j) => {
      // A column that says whether another one is missing agrees with it.
      if (about === i) [x[j], missing[j]] = [0, 0];
      if (about !== undefined && j === i && u === 1) missing[about] = 1;
    });
    app.setInput({ x, missing, source: null });
  }

  /**
   * Let a column be expected by the model.
   * @param {number} i
   */
  release(i) {
    const missing = this.app.values.missing.slice();
    missing[i] = 1;
    this.app.fields.forEach(({ facts: { about } }, j) => about === i && (missing[j] = 1));
    this.app.setInput({ missing });
  }

  addCurve() {
    this.curve = make("canvas", {
      class: "curve",
      tabindex: "0",
      role: "img",
      "aria-label": "x, a line over the columns; draw to change it",
    });
    this.place.append(this.curve);
    const draw = (/** @type {PointerEvent} */ event) => {
      if (!event.buttons || !this.curve) return;
      const { left, top, width, height } = this.curve.getBoundingClientRect();
      const i = Math.min(Math.max(Math.floor(((event.clientX - left) / width) * this.app.D), 0), this.app.D - 1);
      this.change(i, this.app.fields[i].atPosition(1 - (event.clientY - top) / height));
    };
    this.curve.addEventListener("pointerdown", draw);
    this.curve.addEventListener("pointermove", draw);
  }

  show() {
    const { app } = this;
    const { x, missing, z, isMoved, epsilonSeed } = app.values;
    const values = x ?? app.columns.means;
    if (this.curve) this.drawCurve(this.curve, values, app.model.mean(app.model.decode(z)));
    const isAtZ = isMoved || !app.model.encoder;
    const expected = !this.lines.length ? null : isAtZ ? Prediction.at(app.model, z, epsilonSeed) : app.prediction;
    this.lines.forEach((line, i) => {
      // At a z that was chosen by hand, a known column has no expectation: it was not asked for.
      const isKnown = !missing[i] && app.model.encoder !== null;
      line.show({ isKnown, u: values[i], expected: isAtZ && isKnown ? null : (expected?.of(i) ?? null) });
    });
    find("back").hidden = !isAtZ || !app.model.encoder || !app.isListed;
    find("known-words").textContent = this.words(isAtZ, missing);
  }

  /**
   * @param {boolean} isAtZ
   * @param {Uint8Array} missing
   */
  words(isAtZ, missing) {
    const { D, values, isListed } = this.app;
    if (!isListed) return "Draw to change the black line; the blue one is what the decoder gives at z.";
    const known = D - missing.reduce((sum, flag) => sum + flag, 0);
    if (isAtZ) return `What the model expects at z = ${writtenVector(values.z)}, which you chose.`;
    if (!known) return "Nothing is known yet: this is what the model expects of any row. Set a column, and the others follow.";
    if (known === D) return "All columns are known. The bars show what the model would expect of each one without it.";
    return `${known} of ${D} columns ${known === 1 ? "is" : "are"} known; the others are what the model expects given ${known === 1 ? "it" : "them"}.`;
  }

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {Float32Array} x
   * @param {Float32Array} mean
   */
  drawCurve(canvas, x, mean) {
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    const drawing = fitted(canvas, width, height);
    for (const [values, tint] of /** @type {[Float32Array, string][]} */ ([
      [x, colour("ink")],
      [mean, colour("accent")],
    ])) {
      drawing.beginPath();
      values.forEach((value, i) => {
        const field = this.app.fields[i];
        drawing.lineTo(((i + 0.5) / this.app.D) * width, (1 - field.position(field.shown(value))) * height);
      });
      drawing.strokeStyle = tint;
      drawing.lineWidth = 1.5;
      drawing.stroke();
    }
  }

  /** Nothing is known; of a curve, all columns have their means. */
  clear() {
    const { app } = this;
    const missing = new Uint8Array(app.D).fill(app.isListed ? 1 : 0);
    app.setInput({ x: app.columns.means.slice(), source: null, missing, noise: 0 });
  }

  /**
   * The first row of a .csv file. With a header, columns are matched by name, and those that it lacks are unknown.
   * @param {File} file
   */
  async read(file) {
    const { app } = this;
    const names = app.fields.map(({ name }) => name);
    const lines = readCells(await file.text());
    const hasHeader = lines.length > 1 && lines[0].some((cell) => names.includes(cell));
    const cells = lines[hasHeader ? 1 : 0] ?? [];
    const order = names.map((name, i) => (hasHeader ? lines[0].indexOf(name) : i));
    if (!hasHeader && cells.length !== app.D)
      throw new Error(`the file needs a header with names of columns as here, or one row of ${app.D} cells`);
    const x = app.columns.means.slice();
    const missing = new Uint8Array(app.D).fill(1);
    /** @type {string[]} */
    const odd = [];
    app.fields.forEach((field, i) => {
      const cell = cells[order[i]] ?? "";
      if (isGap(cell)) return;
      const u = field.read(cell);
      if (Number.isNaN(u)) odd.push(field.name);
      else [x[i], missing[i]] = [u, 0];
    });
    if (odd.length === app.D) throw new Error("none of its cells is a value that the columns here can have");
    app.setInput({ x, source: null, missing, noise: 0 });
    return odd.length ? `${file.name}: not known here, and left open: ${odd.join(", ")}.` : "";
  }
}
