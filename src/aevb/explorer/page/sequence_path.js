// The path of the states of a sequence in the plane, with the present one.

import { colour, fitted } from "./dom.js";

/** @typedef {import("./sequences.js").View} View */

const MARGIN = 18; // pixels

/**
 * From states to pixels, with one unit for both axes.
 * @param {HTMLCanvasElement} canvas
 * @param {View} view
 */
function scaleOf(canvas, { path }) {
  const size = canvas.clientWidth;
  const [low, high] = [
    [Infinity, Infinity],
    [-Infinity, -Infinity],
  ];
  path.forEach((value, i) => {
    low[i % 2] = Math.min(low[i % 2], value);
    high[i % 2] = Math.max(high[i % 2], value);
  });
  const unit = (size - 2 * MARGIN) / (Math.max(high[0] - low[0], high[1] - low[1]) || 1);
  const place = (/** @type {number} */ step) => /** @type {const} */ ([
    size / 2 + (path[2 * step] - (low[0] + high[0]) / 2) * unit,
    size / 2 - (path[2 * step + 1] - (low[1] + high[1]) / 2) * unit,
  ]);
  return { size, place };
}

/**
 * The step whose state is nearest to a place on the plane.
 * @param {HTMLCanvasElement} canvas
 * @param {View} view
 * @param {number} x
 * @param {number} y
 */
export function nearestOnPath(canvas, view, x, y) {
  const { place } = scaleOf(canvas, view);
  const distance = (/** @type {number} */ step) => Math.hypot(place(step)[0] - x, place(step)[1] - y);
  let best = 0;
  for (let step = 1; step < view.length; step++) if (distance(step) < distance(best)) best = step;
  return best;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {View} view
 * @param {number} step the present one; the last observed one if it is of the forecast
 */
export function drawPath(canvas, view, step) {
  const { size, place } = scaleOf(canvas, view);
  if (size <= 2 * MARGIN) return;
  const drawing = fitted(canvas, size, size);
  const now = Math.min(step, view.length - 1);
  const trace = (/** @type {number} */ from, /** @type {number} */ to, /** @type {string} */ style) => {
    drawing.strokeStyle = style;
    drawing.beginPath();
    for (let k = from; k <= to; k++) drawing.lineTo(...place(k));
    drawing.stroke();
  };
  drawing.lineWidth = 1.2;
  trace(now, view.length - 1, colour("rule"));
  trace(0, now, colour("accent"));
  drawing.fillStyle = colour("faint");
  for (let k = 0; k < view.length; k++) drawing.fillRect(place(k)[0] - 1, place(k)[1] - 1, 2, 2);
  dot(drawing, place(0), 5, colour("accent"), colour("paper-low"));
  dot(drawing, place(now), 6.5, colour("leaf"), colour("leaf"));
  canvas.setAttribute("aria-label", `The path of the states, at step ${now + 1} of ${view.length}`);
}

/**
 * @param {CanvasRenderingContext2D} drawing
 * @param {readonly [number, number]} place
 * @param {number} radius
 * @param {string} line
 * @param {string} fill
 */
function dot(drawing, [x, y], radius, line, fill) {
  drawing.beginPath();
  drawing.arc(x, y, radius, 0, 2 * Math.PI);
  drawing.fillStyle = fill;
  drawing.fill();
  drawing.strokeStyle = line;
  drawing.lineWidth = 1.5;
  drawing.stroke();
}
