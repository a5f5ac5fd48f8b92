// The input pad for tables: one slider per column, next to the model's prediction; with many columns, a line to draw.

import { colour, find, fitted, make, written } from "./dom.js";

/** @typedef {import("./app.js").App} App */
/**
 * @typedef {object} Line the elements of a column
 * @property {HTMLInputElement} slider
 * @property {HTMLElement} number
 * @property {HTMLInputElement} keep
 * @property {HTMLElement} band
 * @property {HTMLElement} mark
 */

const MOST_SLIDERS = 60;

export class Table {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.place = find("columns");
    this.place.hidden = false;
    this.names = Array.from({ length: app.D }, (_, i) => app.data.columns[i] ?? `column ${i + 1}`);
    /** @type {Line[]} */
    this.lines = [];
    /** @type {HTMLCanvasElement | null} */
    this.curve = null;
    if (app.D <= MOST_SLIDERS) this.names.forEach((name, i) => this.addLine(name, i));
    else this.addCurve();
    app.state.on(["x", "missing", "z"], () => this.show());
  }

  /** @param {number} i */
  range(i) {
    const { means, stds } = this.app.columns;
    if (this.app.model.inUnitInterval) return [0, 1];
    const width = 3.2 * (stds[i] || 1);
    return [means[i] - width, means[i] + width];
  }

  /**
   * A value of a column in the units of the data, with digits for a hundredth of its standard deviation if it is far
   * from 0.
   * @param {number} value
   * @param {number} i
   */
  text(value, i) {
    const offset = this.app.offset[i];
    if (!offset) return compact(value);
    const digits = Math.ceil(2 - Math.log10(this.app.columns.stds[i] || 1));
    return written(value + offset, Math.min(Math.max(digits, 0), 8));
  }

  /**
   * @param {string} name
   * @param {number} i
   */
  addLine(name, i) {
    const [low, high] = this.range(i);
    const slider = make("input", {
      type: "range",
      min: low + this.app.offset[i],
      max: high + this.app.offset[i],
      step: (high - low) / 400,
      "aria-label": `${name}: value`,
    });
    const keep = make("input", {
      type: "checkbox",
      checked: true,
      "aria-label": `${name} is known`,
      title: "known, or to be predicted",
    });
    const number = make("span", { class: "number" });
    const [band, mark] = [make("i", { class: "band" }), make("i", { class: "mark" })];
    const track = make("span", { class: "track" }, [band, mark, slider]);
    this.place.append(
      make("div", { class: "column" }, [keep, make("span", { class: "name", text: name, title: name }), track, number]),
    );
    this.lines.push({ slider, number, keep, band, mark });
    slider.addEventListener("input", () => this.change(i, Number(slider.value) - this.app.offset[i]));
    keep.addEventListener("change", () => {
      const missing = this.app.values.missing.slice();
      missing[i] = keep.checked ? 0 : 1;
      this.app.setInput({ missing });
    });
  }

  /**
   * @param {number} i
   * @param {number} value
   */
  change(i, value) {
    const x = (this.app.values.x ?? this.app.columns.means).slice();
    const missing = this.app.values.missing.slice();
    x[i] = value;
    missing[i] = 0;
    this.app.setInput({ x, missing, source: null });
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
      const [low, high] = this.range(i);
      this.change(i, high - ((event.clientY - top) / height) * (high - low));
    };
    this.curve.addEventListener("pointerdown", draw);
    this.curve.addEventListener("pointermove", draw);
  }

  show() {
    const { app } = this;
    const { x, missing, z } = app.values;
    const p = app.model.decode(z);
    const values = x ?? app.columns.means;
    this.lines.forEach(({ slider, number, keep, band, mark }, i) => {
      const [low, high] = this.range(i);
      const share = (/** @type {number} */ value) => 100 * Math.min(Math.max((value - low) / (high - low), 0), 1);
      const sd = p.sigma ? p.sigma[i] : Math.sqrt(p.mu[i] * (1 - p.mu[i]));
      band.style.left = `${share(p.mu[i] - sd)}%`;
      band.style.width = `${share(p.mu[i] + sd) - share(p.mu[i] - sd)}%`;
      mark.style.left = `${share(p.mu[i])}%`;
      if (document.activeElement !== slider) slider.value = String(values[i] + app.offset[i]);
      keep.checked = !missing[i];
      slider.classList.toggle("unknown", Boolean(missing[i]));
      number.textContent = missing[i] ? "?" : this.text(values[i], i);
      slider.setAttribute(
        "aria-valuetext",
        `${missing[i] ? "unknown" : this.text(values[i], i)}; the model predicts ${this.text(p.mu[i], i)} ± ${compact(sd)}`,
      );
    });
    if (this.curve) this.drawCurve(this.curve, values, p.mu);
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
        const [low, high] = this.range(i);
        drawing.lineTo(((i + 0.5) / this.app.D) * width, height - ((value - low) / (high - low)) * height);
      });
      drawing.strokeStyle = tint;
      drawing.lineWidth = 1.5;
      drawing.stroke();
    }
  }

  clear() {
    const { app } = this;
    app.setInput({ x: app.columns.means.slice(), source: null, missing: new Uint8Array(app.D), noise: 0 });
  }

  /**
   * The first row of numbers in a .csv file; with a header, columns are matched by name.
   * @param {File} file
   */
  async read(file) {
    const lines = (await file.text())
      .split(/\r?\n/)
      .filter((line) => line.trim())
      .map((line) => line.split(/[,;\t]/).map((cell) => cell.trim().replace(/^"|"$/g, "")));
    const hasHeader = lines.length > 1 && lines[0].some((cell) => cell && !Number.isFinite(Number(cell)));
    const cells = lines[hasHeader ? 1 : 0] ?? [];
    const order = hasHeader ? this.names.map((name) => lines[0].indexOf(name)) : this.names.map((_, i) => i);
    if (order.some((place) => place < 0 || place >= cells.length))
      throw new Error(`the file needs ${this.app.D} columns of numbers, in this order or named as here`);
    const isGap = order.map((place) => cells[place] === "" || !Number.isFinite(Number(cells[place])));
    const given = this.app.fromUnits(order.map((place) => Number(cells[place])));
    const x = given.map((value, i) => (isGap[i] ? this.app.columns.means[i] : value));
    this.app.setInput({ x, source: null, missing: Uint8Array.from(isGap, Number), noise: 0 });
  }
}

/** @param {number} value */
function compact(value) {
  const size = Math.abs(value);
  return written(value, size >= 100 ? 0 : size >= 10 ? 1 : 2);
}
