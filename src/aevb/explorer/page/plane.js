// The interactive latent plane: how dragging, clicking and keys change z and the view.

import { Backdrop } from "./backdrop.js";
import { find, findCanvas, make, writtenVector } from "./dom.js";
import { Overlay } from "./overlay.js";
import { labelName } from "./palette.js";
import { Scatter } from "./scatter.js";

/** @typedef {import("./app.js").App} App */
/**
 * From coordinates to CSS pixels.
 * @typedef {object} Frame
 * @property {number} size of the square
 * @property {number} left coordinate at its left side
 * @property {number} bottom coordinate at its lower side
 * @property {number} unit pixels per unit
 * @property {(a: number, b: number) => [number, number]} place
 */

const REACH = 11; // pixels
const [NEAREST, WIDEST] = [0.02, 12];

export class Plane {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.box = find("plane");
    this.overlay = new Overlay(app, findCanvas("overlay"));
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
    state.on(["view", "basis", "level", "first", "second", "label", "colour", "isDataShown"], () => this.scatter.draw(this.frame()));
    state.on(["view", "basis", "level", "belowSeed", "isBelowDrawn", "first", "second", "z", "colour", "isManifoldShown"], () =>
      this.backdrop.show(this.frame()),
    );
    state.on(["isDataShown", "isManifoldShown"], () => this.fadeBackdrop());
    new ResizeObserver(() => this.redraw()).observe(this.box);
    this.fadeBackdrop();
  }

  /** @returns {Frame} */
  frame() {
    const { x, y, span } = this.app.values.view;
    const size = this.box.clientWidth;
    const unit = size / 2 / span;
    const [left, bottom] = [x - span, y - span];
    return { size, left, bottom, unit, place: (a, b) => [(a - left) * unit, size - (b - bottom) * unit] };
  }

  /** Redraw everything, after a change of size or colours. */
  redraw() {
    const frame = this.frame();
    if (!frame.size) return;
    this.backdrop.show(frame, true);
    this.scatter.draw(frame);
    this.draw();
  }

  fadeBackdrop() {
    const { isDataShown } = this.app.values;
    this.box.classList.toggle("soft", isDataShown);
  }

  /** Describe the position of z in words. */
  describe() {
    const { app } = this;
    const near = this.scatter.nearest(...this.overlay.at(app.values.z, this.frame()), Infinity);
    const { labels, values } = app.colouring();
    const name = near >= 0 && values ? labelName(labels, values[near]) : "";
    return `z = ${writtenVector(app.values.z)}.${name ? ` The nearest datapoint is labelled ${name}.` : ""}`;
  }

  draw() {
    this.overlay.draw(this.frame());
  }

  /**
   * The z at a position on the screen; the coordinates that are not shown keep their values.
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

  /** @param {number} factor above 1 to zoom in */
  zoom(factor) {
    const frame = this.frame();
    const [x, y] = this.overlay.at(this.app.values.z, frame);
    this.zoomAt(factor, x, y);
  }

  /**
   * @param {number} factor
   * @param {number} x of the point that stays in place
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

  /** Zoom in on q(z|x). */
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
    box.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey && document.activeElement !== box) return;
        event.preventDefault();
        this.zoomAt(Math.exp(-event.deltaY / 300), ...this.placeOf(event));
      },
      { passive: false },
    );
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
      const [ax, ay] = this.overlay.at(values[name], frame);
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
    const moves = /** @type {Record<string, [number, number]>} */ ({
      ArrowLeft: [-step, 0],
      ArrowRight: [step, 0],
      ArrowUp: [0, step],
      ArrowDown: [0, -step],
    });
    const actions = /** @type {Record<string, () => void>} */ ({
      "+": () => this.zoom(1.5),
      "=": () => this.zoom(1.5),
      "-": () => this.zoom(1 / 1.5),
      0: () => app.showAll(),
      Enter: () => app.pick(this.scatter.nearest(...this.overlay.at(app.values.z, this.frame()), Infinity)),
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
    const follow = (/** @type {number} */ middle, /** @type {number} */ value) =>
      Math.min(Math.max(middle, value - 0.9 * view.span), value + 0.9 * view.span);
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
    const { labels, values } = app.colouring();
    const name = values ? labelName(labels, values[number]) : "";
    const kept = number < app.data.num_held_out ? "held out" : "training row";
    this.tip.replaceChildren(canvas, make("span", { text: [name, kept].filter(Boolean).join(" · ") }));
    app.painter.paint(canvas, app.point(number), app.gaps(number));
    const { size } = this.frame();
    const [x, y] = [this.scatter.xs[number], this.scatter.ys[number]];
    this.tip.style.left = `${Math.min(Math.max(x - 52, 4), size - 112)}px`;
    this.tip.style.top = `${y > size / 2 ? y - 142 : y + 16}px`;
  }
}
