// The input pad for images: draw, erase, mark as missing.

import { colour, context, find, findCanvas } from "./dom.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {"draw" | "erase" | "mask"} Tool */

const SIZES = { draw: 1.15, erase: 2, mask: 2.6 }; // radii on an image of 28 pixels

export class Pad {
  /**
   * @param {App} app
   * @param {number[]} shape (height, width), or (height, width, channels)
   */
  constructor(app, [height, width, channels = 1]) {
    this.app = app;
    this.channels = channels;
    this.width = width;
    this.height = height;
    this.canvas = findCanvas("input");
    this.pen = findCanvas("pen");
    /** @type {Tool} */
    this.tool = "draw";
    this.cursor = [Math.floor(width / 2), Math.floor(height / 2)];
    this.box = find("pad");
    this.box.style.aspectRatio = `${width} / ${height}`;
    this.listen();
    app.state.on(["x", "missing"], () => this.show());
  }

  show() {
    const { x, missing } = this.app.values;
    this.app.painter.paint(this.canvas, x ?? this.app.fromUnits(this.blank()), missing);
  }

  /** An empty image, in the units of the data: all pixels have the smallest value. */
  blank() {
    return new Float64Array(this.app.D).fill(this.ends()[0]);
  }

  listen() {
    const { box } = this;
    /** @type {[number, number] | null} */
    let last = null;
    box.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      box.setPointerCapture(event.pointerId);
      last = this.placeOf(event);
      this.stroke(last, last);
    });
    box.addEventListener("pointermove", (event) => {
      if (!last) return;
      for (const part of event.getCoalescedEvents?.() ?? [event]) {
        const place = this.placeOf(part);
        this.stroke(last, place);
        last = place;
      }
    });
    for (const name of ["pointerup", "pointercancel"]) box.addEventListener(name, () => (last = null));
    box.addEventListener("keydown", (event) => this.onKey(event));
    box.addEventListener("focus", () => this.showCursor());
    box.addEventListener("blur", () => context(this.pen).clearRect(0, 0, this.pen.width, this.pen.height));
  }

  /**
   * @param {PointerEvent} event
   * @returns {[number, number]} in pixels of the image
   */
  placeOf(event) {
    const { left, top, width, height } = this.box.getBoundingClientRect();
    return [((event.clientX - left) / width) * this.width - 0.5, ((event.clientY - top) / height) * this.height - 0.5];
  }

  /**
   * @param {[number, number]} from
   * @param {[number, number]} to
   */
  stroke(from, to) {
    const { app, width, height, channels } = this;
    const x = app.values.x ? app.inUnits(app.values.x) : this.blank();
    const missing = app.values.missing.slice();
    const radius = Math.max((Math.max(width, height) / 28) * SIZES[this.tool], 0.8); // in pixels of the image
    const [low, high] = this.ends();
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        const d = distance(column, row, from, to) / radius;
        const first = (row * width + column) * channels;
        if (this.tool === "mask") {
          if (d <= 1) missing.fill(1, first, first + channels);
          continue;
        }
        const ink = Math.min(Math.max(1.55 - d, 0), 1); // a soft edge
        if (!ink) continue;
        missing.fill(0, first, first + channels);
        for (let i = first; i < first + channels; i++) {
          const level =
            this.tool === "draw"
              ? Math.max((x[i] - low) / (high - low), ink)
              : Math.min((x[i] - low) / (high - low), 1 - ink);
          x[i] = low + (high - low) * (Math.round(255 * level) / 255);
        }
      }
    }
    app.setInput(this.tool === "mask" ? { missing } : { x: app.fromUnits(x), missing, source: null });
  }

  clear() {
    const { app } = this;
    app.setInput({ x: app.fromUnits(this.blank()), source: null, missing: new Uint8Array(app.D), noise: 0 });
  }

  /** Move the drawing to the centre of mass of the data: the encoder has never seen it elsewhere. */
  center() {
    const { app, width, height, channels } = this;
    if (!app.values.x) return;
    const before = app.inUnits(app.values.x);
    const mine = middle(before, width, channels, this.blank()[0]);
    const theirs = middle(app.inUnits(app.columns.means), width, channels, this.blank()[0]);
    const [dx, dy] = [Math.round(theirs[0] - mine[0]), Math.round(theirs[1] - mine[1])];
    const x = this.blank();
    const missing = new Uint8Array(app.D);
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        const [u, v] = [column - dx, row - dy];
        if (u < 0 || v < 0 || u >= width || v >= height) continue;
        const [to, from] = [(row * width + column) * channels, (v * width + u) * channels];
        for (let c = 0; c < channels; c++) {
          x[to + c] = before[from + c];
          missing[to + c] = app.values.missing[from + c];
        }
      }
    }
    if (dx || dy) app.setInput({ x: app.fromUnits(x), missing, source: null });
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const moves = /** @type {Record<string, [number, number]>} */ ({
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, -1],
      ArrowDown: [0, 1],
    });
    const isPress = event.key === " " || event.key === "Enter";
    if (!moves[event.key] && !isPress) return;
    event.preventDefault();
    const before = /** @type {[number, number]} */ (this.cursor.slice());
    const [dx, dy] = moves[event.key] ?? [0, 0];
    this.cursor = [clip(this.cursor[0] + dx, this.width), clip(this.cursor[1] + dy, this.height)];
    if (isPress || event.shiftKey) this.stroke(before, /** @type {[number, number]} */ (this.cursor));
    this.showCursor();
  }

  /** Show where the keyboard would draw. */
  showCursor() {
    const { width, height } = this;
    Object.assign(this.pen, { width: 8 * width, height: 8 * height });
    if (!this.box.matches(":focus-visible")) return;
    const drawing = context(this.pen);
    drawing.strokeStyle = colour("accent");
    drawing.lineWidth = 3;
    drawing.strokeRect(8 * this.cursor[0] - 4, 8 * this.cursor[1] - 4, 16, 16);
  }

  /**
   * Read a picture from a file, with light and dark as in the data.
   * @param {File} file
   * @returns {Promise<string>} a message for the user
   */
  async read(file) {
    const { app, width, height, channels } = this;
    const bitmap = await createImageBitmap(file);
    const sheet = document.createElement("canvas");
    Object.assign(sheet, { width, height });
    const drawing = context(sheet, { willReadFrequently: true });
    drawing.fillStyle = "#fff";
    const scale = Math.min(width / bitmap.width, height / bitmap.height);
    const [w, h] = [bitmap.width * scale, bitmap.height * scale];
    drawing.imageSmoothingQuality = "high";
    drawing.fillRect(0, 0, width, height);
    drawing.drawImage(bitmap, (width - w) / 2, (height - h) / 2, w, h);
    const { data } = drawing.getImageData(0, 0, width, height);
    // Converted to grey like Pillow, which reads folders of pictures: a training file gives the same row again.
    const levels = Float64Array.from({ length: width * height * channels }, (_, place) => {
      const i = Math.floor(place / channels);
      const [r, g, b] = data.subarray(4 * i, 4 * i + 3);
      if (channels === 3) return data[4 * i + (place % 3)];
      const light = (19595 * r + 38470 * g + 7471 * b + 0x8000) >> 16;
      return app.data.light_on_dark ? light : 255 - light;
    });
    const [low, high] = this.ends();
    const x = levels.map((level) => low + (high - low) * (level / 255));
    app.setInput({ x: app.fromUnits(x), source: null, missing: new Uint8Array(app.D), noise: 0 });
    if (channels === 3) return `${file.name}: resized to ${width} x ${height} pixels.`;
    const large = app.data.light_on_dark ? "light" : "dark";
    return `${file.name}: ${large} pixels are large values, as in the data. Invert makes them small ones.`;
  }

  /** Swap light and dark, for a picture with the opposite polarity to the data. */
  invert() {
    const { app } = this;
    if (!app.values.x) return;
    const [low, high] = this.ends();
    const x = app.inUnits(app.values.x).map((value) => low + high - value);
    app.setInput({ x: app.fromUnits(x), source: null });
  }

  /** The values of black and white, or of white and black, in the units of the data. */
  ends() {
    return this.app.model.inUnitInterval ? [0, 1] : this.app.data.range;
  }
}

/**
 * @param {number} x
 * @param {number} y
 * @param {[number, number]} from
 * @param {[number, number]} to
 */
function distance(x, y, [x0, y0], [x1, y1]) {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const square = dx * dx + dy * dy;
  const t = square ? Math.min(Math.max(((x - x0) * dx + (y - y0) * dy) / square, 0), 1) : 0;
  return Math.hypot(x - x0 - t * dx, y - y0 - t * dy);
}

/**
 * @param {Float64Array} x
 * @param {number} width
 * @param {number} channels
 * @param {number} low
 */
function middle(x, width, channels, low) {
  let [sum, right, down] = [1e-9, 0, 0];
  x.forEach((value, i) => {
    sum += value - low;
    const pixel = Math.floor(i / channels);
    right += (value - low) * (pixel % width);
    down += (value - low) * Math.floor(pixel / width);
  });
  return [right / sum, down / sum];
}

/**
 * @param {number} value
 * @param {number} size
 */
function clip(value, size) {
  return Math.min(Math.max(value, 0), size - 1);
}
