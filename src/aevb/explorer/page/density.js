// Pictures of p(y|x): its density, and how its quantiles change along one input.

import { colour, fitted, written } from "./dom.js";

/** @typedef {import("./fields.js").Field} Field */
/** @typedef {import("./predictor.js").Predicted} Predicted */

const NUM_POINTS = 220;
const [TOP, BOTTOM] = [8, 20]; // pixels above and below a picture
const LEFT = 56;

/**
 * The density of one target, with its mean, the central 50 % and 90 %, and the target of a real row.
 * @param {HTMLCanvasElement} canvas
 * @param {Field} field
 * @param {Predicted} predicted
 * @param {number} actual stored number; NaN if there is none
 */
export function drawDensity(canvas, field, { mean, quantiles, density }, actual) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (width < 50) return; // not laid out yet
  const drawing = fitted(canvas, width, height);
  let [low, high] = spanOf(field, quantiles);
  const isCount = isCountOf(field) && high - low < NUM_POINTS;
  if (isCount) [low, high] = [Math.floor(low) - 0.5, Math.ceil(high) + 0.5]; // whole bars
  const across = (/** @type {number} */ value) => ((value - low) / (high - low)) * width;
  const values = isCount
    ? Array.from({ length: Math.floor(high) - Math.ceil(low) + 1 }, (_, k) => Math.ceil(low) + k)
    : Array.from({ length: NUM_POINTS }, (_, k) => low + ((high - low) * k) / (NUM_POINTS - 1));
  const heights = values.map((value) => density(field.stored(value)));
  const most = Math.max(...heights) || 1;
  const up = (/** @type {number} */ value) => height - BOTTOM - (value / most) * (height - BOTTOM - TOP);
  const half = isCount ? across(0.5) - across(0) : 0; // the width of a bar on each side
  const [q05, q25, , q75, q95] = quantiles.map((u) => across(field.shown(u)));
  const trace = () => {
    drawing.beginPath();
    drawing.moveTo(across(values[0]) - half, up(0));
    values.forEach((value, k) => {
      if (isCount) drawing.lineTo(across(value) - half, up(heights[k]));
      drawing.lineTo(across(value) + half, up(heights[k]));
    });
    drawing.lineTo(across(values[values.length - 1]) + half, up(0));
  };
  for (const [from, to, alpha] of [
    [0, width, 0.1],
    [q05 - half, q95 + half, 0.16],
    [q25 - half, q75 + half, 0.26],
  ]) {
    drawing.save();
    drawing.beginPath();
    drawing.rect(from, 0, to - from, height - BOTTOM);
    drawing.clip();
    trace();
    drawing.globalAlpha = alpha;
    drawing.fillStyle = colour("accent");
    drawing.fill();
    drawing.restore();
  }
  trace();
  drawing.lineWidth = 1.8;
  drawing.strokeStyle = colour("accent");
  drawing.stroke();
  upright(drawing, across(shownMean(field, mean)), height, colour("ink"), []);
  if (Number.isFinite(actual)) upright(drawing, across(field.shown(actual)), height, colour("warm"), [4, 3]);
  writeTicks(drawing, field, [low, high], width, height);
}

/**
 * Medians and bands of a target along one input.
 * @param {HTMLCanvasElement} canvas
 * @param {{ input: Field, target: Field, positions: number[], bands: number[][], now: number }} fan bands are quantiles of
 *   stored numbers, positions and now those of the input on its slider
 */
export function drawFan(canvas, { input, target, positions, bands, now }) {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (width < 50) return;
  const drawing = fitted(canvas, width, height);
  if (!bands.length) return;
  const shown = bands.map((quantiles) => quantiles.map((u) => target.shown(u)));
  const [low, high] = [Math.min(...shown.map((q) => q[0])), Math.max(...shown.map((q) => q[4]))];
  const across = (/** @type {number} */ position) => LEFT + position * (width - LEFT - 8);
  const up = (/** @type {number} */ v) => height - BOTTOM - ((v - low) / (high - low || 1)) * (height - BOTTOM - TOP);
  for (const [from, to, alpha] of [
    [0, 4, 0.18],
    [1, 3, 0.3],
  ]) {
    drawing.beginPath();
    shown.forEach((q, k) => drawing.lineTo(across(positions[k]), up(q[from])));
    for (let k = shown.length - 1; k >= 0; k--) drawing.lineTo(across(positions[k]), up(shown[k][to]));
    drawing.globalAlpha = alpha;
    drawing.fillStyle = colour("accent");
    drawing.fill();
    drawing.globalAlpha = 1;
  }
  drawing.beginPath();
  shown.forEach((q, k) => drawing.lineTo(across(positions[k]), up(q[2])));
  drawing.lineWidth = 1.8;
  drawing.strokeStyle = colour("accent");
  drawing.stroke();
  if (Number.isFinite(now)) upright(drawing, across(now), height, colour("ink"), [4, 3]);
  drawing.font = "11px system-ui, sans-serif";
  drawing.fillStyle = colour("faint");
  drawing.textAlign = "right";
  for (const value of [low, high]) drawing.fillText(target.number(value), LEFT - 6, up(value) + (value === high ? 10 : 0));
  drawing.textAlign = "left";
  drawing.fillText(input.number(input.shown(input.atPosition(0))), LEFT, height - 5);
  drawing.textAlign = "right";
  drawing.fillText(input.number(input.shown(input.atPosition(1))), width - 8, height - 5);
  drawing.textAlign = "left";
}

/**
 * The mean as a shown number.
 * @param {Field} field
 * @param {number} mean in the units of the columns
 */
function shownMean({ facts: { origin = 0, factor = 1 } }, mean) {
  return origin + factor * mean;
}

/**
 * The mean as text; that of whole numbers with a decimal.
 * @param {Field} field
 * @param {number} mean
 */
export function meanInWords(field, mean) {
  const value = shownMean(field, mean);
  return field.facts.is_whole && !field.isDate ? written(value, 1) : field.number(value);
}

/**
 * The ends of a picture: those of the data, or farther if y is expected there.
 * @param {Field} field
 * @param {number[]} quantiles
 */
function spanOf(field, quantiles) {
  const [q05, , , , q95] = quantiles.map((u) => field.shown(u));
  const beyond = 0.5 * (q95 - q05);
  const { least = -Infinity, most = Infinity } = field.facts;
  return [Math.max(Math.min(field.ends[0], q05 - beyond), least), Math.min(Math.max(field.ends[1], q95 + beyond), most)];
}

/** @param {Field} field whose stored numbers are counts */
function isCountOf({ model, i, facts }) {
  return facts.is_whole === true && model.toUnits(1, i) === 1 && model.toUnits(0, i) === 0;
}

/**
 * @param {CanvasRenderingContext2D} drawing
 * @param {number} x
 * @param {number} height
 * @param {string} tint
 * @param {number[]} dashes
 */
function upright(drawing, x, height, tint, dashes) {
  drawing.setLineDash(dashes);
  drawing.beginPath();
  drawing.moveTo(x, TOP - 4);
  drawing.lineTo(x, height - BOTTOM);
  drawing.lineWidth = 1.6;
  drawing.strokeStyle = tint;
  drawing.stroke();
  drawing.setLineDash([]);
}

/**
 * @param {CanvasRenderingContext2D} drawing
 * @param {Field} field
 * @param {number[]} span
 * @param {number} width
 * @param {number} height
 */
function writeTicks(drawing, field, [low, high], width, height) {
  drawing.fillStyle = colour("rule");
  drawing.fillRect(0, height - BOTTOM, width, 1);
  drawing.font = "11px system-ui, sans-serif";
  drawing.fillStyle = colour("faint");
  const rough = (high - low) / Math.max(Math.floor(width / (field.isDate ? 90 : 55)), 2);
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = field.isDate ? rough : unit * ([1, 2, 5, 10].find((k) => k * unit >= rough) ?? 10);
  for (let k = Math.ceil(low / step); k * step <= high; k++) {
    const x = ((k * step - low) / (high - low)) * width;
    const text = field.isDate ? field.date(k * step) : String(Number((k * step).toPrecision(6))).replace("-", "−");
    const half = drawing.measureText(text).width / 2;
    if (x > half && x < width - half) drawing.fillText(text, x - half, height - 5);
  }
}
