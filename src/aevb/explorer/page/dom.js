// Small helpers for the document. Text is always set as text: names and labels are never interpreted as markup.

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export function find(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return found;
}

/** @param {string} id */
export function findCanvas(id) {
  return /** @type {HTMLCanvasElement} */ (find(id));
}

/** @param {string} id */
export function findInput(id) {
  return /** @type {HTMLInputElement} */ (find(id));
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, string | number | boolean>} [attributes] `text` is the text; those that are false are left out
 * @param {Node[]} [children]
 * @returns {HTMLElementTagNameMap[T]}
 */
export function make(tag, attributes = {}, children = []) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") node.textContent = String(value);
    else if (value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

/**
 * The 2D context of a canvas.
 * @param {HTMLCanvasElement} canvas
 * @param {CanvasRenderingContext2DSettings} [settings]
 */
export function context(canvas, settings) {
  const found = canvas.getContext("2d", settings);
  if (!found) throw new Error("the browser does not support canvas");
  return found;
}

/**
 * A canvas with the resolution of the screen, and coordinates in CSS pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function fitted(canvas, width, height) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const [w, h] = [Math.max(Math.round(width * ratio), 1), Math.max(Math.round(height * ratio), 1)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const drawing = context(canvas);
  drawing.setTransform(ratio, 0, 0, ratio, 0, 0);
  drawing.clearRect(0, 0, width, height);
  return drawing;
}

/** @type {Map<string, string>} */
const colours = new Map();

/** @param {string} name of a colour in the style sheet */
export function colour(name) {
  let found = colours.get(name);
  if (found === undefined) {
    found = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    colours.set(name, found);
  }
  return found;
}

/** Call this after a change between light and dark. */
export function clearColours() {
  colours.clear();
}

/**
 * A number as readable text.
 * @param {number} value
 * @param {number} [digits]
 */
export function written(value, digits = 2) {
  if (!Number.isFinite(value)) return "—";
  return value
    .toFixed(digits)
    .replace(/^-0(\.0*)?$/, (zero) => zero.slice(1))
    .replace("-", "−");
}

/** @param {ArrayLike<number>} values */
export function writtenVector(values) {
  const shown = Array.from(values)
    .slice(0, 4)
    .map((value) => written(value));
  return `(${shown.join(", ")}${values.length > 4 ? ", …" : ""})`;
}

/** Whether the user prefers reduced motion. */
export function prefersReducedMotion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** @param {number} number */
export function subscript(number) {
  return String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]);
}
