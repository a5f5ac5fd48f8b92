// Colours of labels, the same as in the report; they can be distinguished by colour-blind readers.

// After Petroff, "Accessible color sequences for data visualization" (2021), with its greys replaced.
export const COLOURS = [
  "#3f90da",
  "#bd1f01",
  "#ffa90e",
  "#832db6",
  "#5fb7b9",
  "#e76300",
  "#717581",
  "#a96b59",
  "#e377c2",
  "#2f8f4e",
];
// For quantities: viridis in a few steps.
const RAMP = [
  [68, 1, 84],
  [59, 82, 139],
  [33, 145, 140],
  [94, 201, 98],
  [253, 231, 37],
];

/** @typedef {{ kind: "classes", names: string[] } | Quantity | null} Labels */
/**
 * @typedef {object} Quantity
 * @property {"quantity"} kind
 * @property {[number, number]} range
 * @property {(value: number) => number} [scale] of the colours
 * @property {(value: number) => string} [text] of a number
 */

/**
 * @param {Labels} labels
 * @param {number} value index of the class, or the quantity
 */
export function labelColour(labels, value) {
  if (!labels || !Number.isFinite(value)) return "#717581";
  if (labels.kind === "classes") return COLOURS[value % COLOURS.length];
  const { scale = Number } = labels;
  const [low, high] = labels.range.map(scale);
  const place = (RAMP.length - 1) * Math.min(Math.max((scale(value) - low) / (high - low || 1), 0), 1);
  const i = Math.min(Math.floor(place), RAMP.length - 2);
  const mixed = RAMP[i].map((from, k) => Math.round(from + (place - i) * (RAMP[i + 1][k] - from)));
  return `rgb(${mixed.join(" ")})`;
}

/**
 * @param {Labels} labels
 * @param {number} value
 */
export function labelName(labels, value) {
  if (!labels) return "";
  if (labels.kind === "classes") return labels.names[value] ?? "";
  return labels.text ? labels.text(value) : String(Number(value.toPrecision(4)));
}
