// The latent plane: manifold, datapoints, q(z|x), and the place z that can be dragged.

import { Backdrop } from "./backdrop.js";
import { colour, find, findCanvas, fitted, make, written } from "./dom.js";
import { labelName } from "./palette.js";
import { Scatter } from "./scatter.js";

/** @typedef {import("./app.js").App} App */
/**
 * From coordinates to CSS pixels.
 * @typedef {object} Frame
 * @property {number} size of the square
 * @property {number} left coordinate at its left side
 * @property {number} bottom coordinate at its lower side
 * @property {number} unit pixels in a unit
 * @property {(a: number, b: number) => [number, number]} place
 */

const REACH = 11; // pixels
const [NEAREST, WIDEST] = [0.02, 12];

export class Plane {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.box = find("plane");
    this.overlay = findCanvas("overlay");
    this.backdrop = new Backdrop(app, findCanvas("backdrop"));
    this.scatter = new Scatter(app, findCanvas("dots"));
    this.tip = find("tip");
    this.hovered = -1;
    /** @type {Map<number, [number, number]>} */
    this.pointers = new Map();
    /** @type {"" | "z" | "from" | "to" | "pan" | "pinch"} */
    this.held = "";
    this.listen();
    const { state } = app;
    state.on(["view", "basis", "first", "second", "label", "isDataShown"], () => this.scatter.draw(this.frame()));
    state.on(["view", "basis", "first", "second", "z", "isManifoldShown"], () => this.backdrop.show(this.frame()));
    state.on(["isDataShown", "isManifoldShown"], () => this.soften());
    new ResizeObserver(() => this.redraw()).observe(this.box);
    this.soften();
  }

  /** @returns {Frame} */
  frame() {
    const { x, y, span } = this.app.values.view;
    const size = this.box.clientWidth;
    const unit = size / 2 / span;
    const [left, bottom] = [x - span, y - span];
    return { size, left, bottom, unit, place: (a, b) => [(a - left) * unit, size - (b - bottom) * unit] };
  }

  /** Draw everything again: another size, other colours. */
  redraw() {
    const frame = this.frame();
    if (!frame.size) return;
    this.backdrop.show(frame, true);
    this.scatter.draw(frame);
    this.draw();
  }

  soften() {
    const { isDataShown } = this.app.values;
    this.box.classList.toggle("soft", isDataShown);
  }

  /** What lies above the datapoints. */
  draw() {
    const { app } = this;
    const frame = this.frame();
    const drawing = fitted(this.overlay, frame.size, frame.size);
    this.drawAxes(drawing, frame);
    for (const z of app.samples) this.dot(drawing, frame, z, colour("faint"), 3);
    if (app.values.isPathShown) this.drawPath(drawing, frame);
    if (app.q) this.drawPosterior(drawing, frame);
    for (const z of app.particles) this.dot(drawing, frame, z, colour("leaf"), 5);
    const [x, y] = this.at(app.values.z, frame);
    for (const [radius, width, tint] of /** @type {[number, number, string][]} */ ([[10, 5, colour("card")], [10, 2.5, colour("accent")]])) {
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
   * Whole numbers at the sides, and where the prior's standard deviations are.
   * @param {CanvasRenderingContext2D} drawing
   * @param {Frame} frame
   */
  drawAxes(drawing, frame) {
    const { app } = this;
    const { first, second, basis } = app.values;
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
    if (basis === "axes" && second !== first) {
      drawing.setLineDash([2, 5]);
      for (const radius of [1, 2, 3]) {
        const [x, y] = frame.place(0, 0);
        drawing.beginPath();
        drawing.arc(x, y, radius * frame.unit, 0, 2 * Math.PI);
        drawing.lineWidth = 1;
        drawing.strokeStyle = colour("faint");
        drawing.stroke();
      }
      drawing.setLineDash([]);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} drawing
   * @param {Frame} frame
   */
  drawPosterior(drawing, frame) {
    const { app } = this;
    if (!app.q) return;
    const { first, second } = app.values;
    const c = app.basis.coordinates(app.q.mu);
    const { l11, l21, l22 } = app.basis.factor(app.q.sigma, first, second);
    for (const [scale, alpha] of [[2, 0.16], [1, 0.34]]) {
      drawing.beginPath();
      for (let k = 0; k <= 64; k++) {
        const angle = (2 * Math.PI * k) / 64;
        const [u, v] = [scale * Math.cos(angle), scale * Math.sin(angle)];
        const up = second === first ? this.middle() + v * 0.12 * (frame.size / frame.unit) / 2 : c[second] + l21 * u + l22 * v;
        drawing.lineTo(...frame.place(c[first] + l11 * u, up));
      }
      drawing.globalAlpha = alpha;
      drawing.fillStyle = colour("warm");
      drawing.fill();
      drawing.globalAlpha = 1;
      drawing.lineWidth = scale === 1 ? 2 : 1.2;
      drawing.strokeStyle = colour("warm");
      drawing.stroke();
    }
    const J = app.J;
    if (l11 * frame.unit > 5) {
      for (let l = 0; l * J < app.draws.length; l++) this.dot(drawing, frame, app.draws.subarray(l * J, (l + 1) * J), colour("warm"), 2.6);
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
    for (const [name, [x, y]] of /** @type {[string, [number, number]][]} */ ([["A", start], ["B", end]])) {
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

  middle() {
    return this.app.values.view.y;
  }

  /**
   * @param {Float32Array} z
   * @param {Frame} frame
   */
  at(z, frame) {
    const { first, second } = this.app.values;
    const c = this.app.basis.coordinates(z);
    return frame.place(c[first], second === first ? this.middle() : c[second]);
  }

  /**
   * z below a place on the screen; the coordinates that are not shown rest.
   * @param {number} x
   * @param {number} y
   */
  latentAt(x, y) {
    const { first, second, z } = this.app.values;
    const frame = this.frame();
    const c = this.app.basis.coordinates(z);
    if (second !== first) c[second] = frame.bottom + (frame.size - y) / frame.unit;
    c[first] = frame.left + x / frame.unit;
    return this.app.basis.latent(c);
  }

  /** @param {number} factor above 1: nearer */
  zoom(factor) {
    const frame = this.frame();
    const [x, y] = this.at(this.app.values.z, frame);
    this.zoomAt(factor, x, y);
  }

  /**
   * @param {number} factor
   * @param {number} x the place that stays where it is
   * @param {number} y
   */
  zoomAt(factor, x, y) {
    const { view } = this.app.values;
    const frame = this.frame();
    const span = Math.min(Math.max(view.span / factor, NEAREST), WIDEST);
    const [a, b] = [frame.left + x / frame.unit, frame.bottom + (frame.size - y) / frame.unit];
    const share = span / view.span;
    this.app.state.set({ view: { x: a + (view.x - a) * share, y: b + (view.y - b) * share, span } });
  }

  /** Look at q(z|x) from near by. */
  zoomToPosterior() {
    const { app } = this;
    if (!app.q) return;
    const { first, second } = app.values;
    const c = app.basis.coordinates(app.q.mu);
    const { l11, l21, l22 } = app.basis.factor(app.q.sigma, first, second);
    const span = Math.min(Math.max(5 * Math.max(l11, Math.hypot(l21, l22)), NEAREST), WIDEST);
    app.state.set({ view: { x: c[first], y: second === first ? 0 : c[second], span } });
  }

  listen() {
    const { box } = this;
    box.addEventListener("pointerdown", (event) => this.onDown(event));
    box.addEventListener("pointermove", (event) => this.onMove(event));
    box.addEventListener("pointerup", (event) => this.onUp(event));
    box.addEventListener("pointercancel", (event) => this.release(event));
    box.addEventListener("pointerleave", () => this.hover(-1));
    box.addEventListener("keydown", (event) => this.onKey(event));
    box.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== box) return;
      event.preventDefault();
      this.zoomAt(Math.exp(-event.deltaY / 300), ...this.placeOf(event));
    }, { passive: false });
  }

  /**
   * @param {MouseEvent} event
   * @returns {[number, number]}
   */
  placeOf(event) {
    const { left, top } = this.box.getBoundingClientRect();
    return [event.clientX - left - this.box.clientLeft, event.clientY - top - this.box.clientTop];
  }

  /** @param {PointerEvent} event */
  onDown(event) {
    if (event.button !== 0) return;
    this.box.setPointerCapture(event.pointerId);
    const place = this.placeOf(event);
    this.pointers.set(event.pointerId, place);
    this.start = place;
    this.hasMoved = false;
    this.held = this.pointers.size > 1 ? "pinch" : event.shiftKey ? "pan" : this.whatIsAt(place);
    this.hover(-1);
  }

  /** @param {[number, number]} place */
  whatIsAt([x, y]) {
    const { values } = this.app;
    const frame = this.frame();
    for (const name of /** @type {const} */ (["from", "to"])) {
      const [ax, ay] = this.at(values[name], frame);
      if (values.isPathShown && Math.hypot(ax - x, ay - y) < REACH + 3) return name;
    }
    return "z";
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    const place = this.placeOf(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") this.hover(this.scatter.nearest(...place, REACH));
      return;
    }
    if (this.held === "pinch") this.pinch(event.pointerId, place);
    else if (this.held === "pan") this.pan(place[0] - before[0], place[1] - before[1]);
    const [x, y] = this.start ?? place;
    if (Math.hypot(place[0] - x, place[1] - y) > 3) this.hasMoved = true;
    this.pointers.set(event.pointerId, place);
    if (!this.hasMoved) return;
    if (this.held === "z") this.app.moveTo(this.latentAt(...place));
    if (this.held === "from" || this.held === "to") this.app.state.set({ [this.held]: this.latentAt(...place) });
  }

  /** @param {PointerEvent} event */
  onUp(event) {
    if (this.pointers.has(event.pointerId) && this.held === "z" && !this.hasMoved) {
      const place = this.placeOf(event);
      const near = this.scatter.nearest(...place, event.pointerType === "mouse" ? REACH : 2 * REACH);
      if (near >= 0) this.app.pick(near);
      else this.app.moveTo(this.latentAt(...place));
    }
    this.release(event);
  }

  /** @param {PointerEvent} event */
  release(event) {
    this.pointers.delete(event.pointerId);
    if (this.pointers.size === 0) this.held = "";
  }

  /**
   * @param {number} dx
   * @param {number} dy
   */
  pan(dx, dy) {
    const { view } = this.app.values;
    const { unit } = this.frame();
    this.app.state.set({ view: { ...view, x: view.x - dx / unit, y: view.y + dy / unit } });
  }

  /**
   * @param {number} id
   * @param {[number, number]} place
   */
  pinch(id, place) {
    const other = [...this.pointers].find(([key]) => key !== id)?.[1];
    const before = this.pointers.get(id);
    if (!other || !before) return;
    const distance = (/** @type {[number, number]} */ [x, y]) => Math.hypot(x - other[0], y - other[1]);
    this.zoomAt(distance(place) / Math.max(distance(before), 1), (place[0] + other[0]) / 2, (place[1] + other[1]) / 2);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const { app } = this;
    const step = app.values.view.span / (event.shiftKey ? 8 : 40);
    const moves = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] });
    const actions = /** @type {Record<string, () => void>} */ ({
      "+": () => this.zoom(1.5),
      "=": () => this.zoom(1.5),
      "-": () => this.zoom(1 / 1.5),
      0: () => app.state.set({ view: { x: 0, y: 0, span: app.startingSpan() } }),
      Enter: () => app.pick(this.scatter.nearest(...this.at(app.values.z, this.frame()), Infinity)),
    });
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[event.key]) this.move(...moves[event.key]);
    else if (actions[event.key]) actions[event.key]();
    else return;
    event.preventDefault();
  }

  /**
   * Move z; the view follows when z leaves it.
   * @param {number} right
   * @param {number} up
   */
  move(right, up) {
    const { first, second, z, view } = this.app.values;
    const c = this.app.basis.coordinates(z);
    c[first] += right;
    if (second !== first) c[second] += up;
    const follow = (/** @type {number} */ middle, /** @type {number} */ value) => Math.min(Math.max(middle, value - 0.9 * view.span), value + 0.9 * view.span);
    const next = { ...view, x: follow(view.x, c[first]), y: second === first ? view.y : follow(view.y, c[second]) };
    this.app.moveTo(this.app.basis.latent(c));
    if (next.x !== view.x || next.y !== view.y) this.app.state.set({ view: next });
  }

  /** @param {number} number of a datapoint, or -1 */
  hover(number) {
    if (number === this.hovered) return;
    this.hovered = number;
    this.tip.hidden = number < 0;
    if (number < 0) return;
    const { app } = this;
    const canvas = make("canvas", { "aria-hidden": "true" });
    const name = app.labels ? labelName(app.data.labels, app.labels[number]) : "";
    const kept = number < app.data.num_held_out ? "kept aside" : "learned from";
    this.tip.replaceChildren(canvas, make("span", { text: [name, kept].filter(Boolean).join(" · ") }));
    app.painter.paint(canvas, app.point(number));
    const { size } = this.frame();
    const [x, y] = [this.scatter.xs[number], this.scatter.ys[number]];
    this.tip.style.left = `${Math.min(Math.max(x - 52, 4), size - 112)}px`;
    this.tip.style.top = `${y > size / 2 ? y - 142 : y + 16}px`;
  }
}
