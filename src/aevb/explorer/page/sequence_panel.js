// Draws a column of a sequence over time: a line with bands, or a roll of probabilities. What the model expects at
// observed steps has one colour, forecasts have another.

import { colour, fitted } from "./dom.js";
import { MISSING, short } from "./sequence_words.js";

/** @typedef {import("./sequences.js").View} View */
/** @typedef {import("./sequences.js").Panel} Panel */

const [LEFT, RIGHT, LINE_HEIGHT, ROW_HEIGHT] = [86, 10, 130, 6]; // pixels
const [LOWEST, HIGHEST] = [26, 300]; // heights of rolls
const SMALL = "11px system-ui, sans-serif";

/**
 * From steps to pixels.
 * @param {HTMLCanvasElement} canvas
 * @param {View} view
 */
function scaleOf(canvas, { positions }) {
  const width = canvas.clientWidth;
  const [first, last] = [positions[0], positions[positions.length - 1]];
  const unit = (width - LEFT - RIGHT) / (last - first + 1);
  const at = (/** @type {number} */ position) => LEFT + (position - first + 0.5) * unit;
  return { width, unit, at, x: (/** @type {number} */ step) => at(positions[step]) };
}

/**
 * The step that is nearest to a place in a panel.
 * @param {HTMLCanvasElement} canvas
 * @param {View} view
 * @param {number} x
 */
export function stepAt(canvas, view, x) {
  const scale = scaleOf(canvas, view);
  let best = 0;
  for (let step = 1; step < view.positions.length; step++) {
    if (Math.abs(scale.x(step) - x) < Math.abs(scale.x(best) - x)) best = step;
  }
  return best;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {View} view
 * @param {Panel} panel
 * @param {number} step the present one
 * @param {number} numBands
 */
export function drawPanel(canvas, view, panel, step, numBands) {
  const isLine = panel.rows.length === 0;
  const height = isLine ? LINE_HEIGHT : Math.min(Math.max(panel.rows.length * ROW_HEIGHT, LOWEST), HIGHEST);
  canvas.style.height = `${height}px`;
  const scale = scaleOf(canvas, view);
  if (scale.width < LEFT + RIGHT) return;
  const drawing = fitted(canvas, scale.width, height);
  drawing.font = SMALL;
  drawing.textAlign = "right";
  if (isLine) drawLine(drawing, view, panel, scale, height, numBands);
  else drawRoll(drawing, view, panel, scale, height);
  const end = scale.at(view.positions[view.length - 1] + 0.5);
  rule(drawing, end, height, colour("rule"), 1);
  rule(drawing, scale.x(step), height, colour("leaf"), 1.5);
}

/**
 * @param {CanvasRenderingContext2D} drawing
 * @param {number} x
 * @param {number} height
 * @param {string} style
 * @param {number} width
 */
function rule(drawing, x, height, style, width) {
  drawing.strokeStyle = style;
  drawing.lineWidth = width;
  drawing.beginPath();
  drawing.moveTo(x, 0);
  drawing.lineTo(x, height);
  drawing.stroke();
}

/** @typedef {ReturnType<typeof scaleOf>} Scale */

/**
 * @param {CanvasRenderingContext2D} drawing
 * @param {View} view
 * @param {Panel} panel
 * @param {Scale} scale
 * @param {number} height
 * @param {number} numBands
 */
function drawLine(drawing, view, { observed, expected }, scale, height, numBands) {
  const count = 2 * numBands + 1;
  const steps = view.positions.length;
  let [low, high] = [Infinity, -Infinity];
  for (const values of [observed, expected]) {
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  const y = (/** @type {number} */ value) => height - 8 - ((value - low) / (high - low || 1)) * (height - 16);
  const band = (/** @type {number} */ step, /** @type {number} */ place) => y(expected[step * count + place]);
  // A forecast starts where the observations end.
  const last = view.length - 1;
  const start = Number.isNaN(observed[last]) ? band(last, numBands) : y(observed[last]);
  for (const [from, to, name] of /** @type {[number, number, string][]} */ ([
    [0, view.length, "accent"],
    [view.length, steps, "warm"],
  ])) {
    if (from === to) continue;
    const range = Array.from({ length: to - from }, (_, i) => from + i);
    drawing.fillStyle = drawing.strokeStyle = colour(name);
    drawing.lineWidth = 1.5;
    drawing.globalAlpha = 0.2;
    for (let place = 0; place < numBands; place++) {
      drawing.beginPath();
      if (from) drawing.moveTo(scale.x(last), start);
      for (const step of range) drawing.lineTo(scale.x(step), band(step, place));
      for (const step of range.reverse()) drawing.lineTo(scale.x(step), band(step, count - 1 - place));
      range.reverse();
      drawing.fill();
    }
    drawing.globalAlpha = 1;
    drawing.beginPath();
    if (from) drawing.moveTo(scale.x(last), start);
    for (const step of range) drawing.lineTo(scale.x(step), band(step, numBands));
    drawing.stroke();
  }
  drawing.fillStyle = drawing.strokeStyle = colour("ink");
  drawing.lineWidth = 1;
  drawing.beginPath();
  for (let step = 0; step < view.length; step++) {
    const place = /** @type {const} */ ([scale.x(step), y(observed[step])]);
    if (Number.isNaN(observed[step])) continue;
    if (step === 0 || Number.isNaN(observed[step - 1])) drawing.moveTo(...place);
    else drawing.lineTo(...place);
    if (scale.unit > 4) drawing.fillRect(place[0] - 1.5, place[1] - 1.5, 3, 3);
  }
  drawing.stroke();
  drawing.fillStyle = colour("faint");
  drawing.fillText(short(high), LEFT - 8, 12);
  drawing.fillText(short(low), LEFT - 8, height - 4);
}

/**
 * @param {CanvasRenderingContext2D} drawing
 * @param {View} view
 * @param {Panel} panel
 * @param {Scale} scale
 * @param {number} height
 */
function drawRoll(drawing, view, { rows, observed, expected }, scale, height) {
  const R = rows.length;
  const tall = height / R;
  const { positions, length } = view;
  const edge = (/** @type {number} */ step) => scale.at((positions[step - 1] + positions[step]) / 2);
  for (let step = 0; step < positions.length; step++) {
    const left = step === 0 ? scale.at(positions[0] - 0.5) : edge(step);
    const right = step === positions.length - 1 ? scale.at(positions[step] + 0.5) : edge(step + 1);
    for (let row = 0; row < R; row++) {
      const top = height - (row + 1) * tall;
      drawing.fillStyle = colour(step < length ? "accent" : "warm");
      drawing.globalAlpha = 0.9 * (expected[step * R + row] / 255);
      drawing.fillRect(left, top, right - left + 0.4, tall);
      drawing.globalAlpha = 1;
      const seen = step < length ? observed[step * R + row] : 0;
      if (!seen) continue;
      drawing.fillStyle = colour(seen === MISSING ? "hidden" : "ink");
      const side = Math.min(0.6 * (right - left), 0.7 * tall, 8);
      drawing.fillRect((left + right - side) / 2, top + (tall - side) / 2, side, side);
    }
  }
  drawing.fillStyle = colour("faint");
  const every = Math.ceil(14 / tall); // rows between two names that do not overlap
  rows.forEach((name, row) => {
    if (row % every === 0) drawing.fillText(clipped(name), LEFT - 8, Math.max(height - row * tall - tall / 2 + 4, 10));
  });
}

/** @param {string} name */
const clipped = (name) => (name.length > 12 ? `${name.slice(0, 11)}…` : name);
