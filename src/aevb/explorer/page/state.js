// The state of the page, in one place; listeners are notified when the parts that they show change.

import { bytesOf, textOf } from "./arrays.js";

/**
 * @typedef {object} Values
 * @property {Float32Array} z the decoder's input
 * @property {Float32Array | null} x the encoder's input, as observed
 * @property {number | null} source index of the datapoint that x is, if it is one
 * @property {Uint8Array} missing 1 where x is marked as missing
 * @property {number} noise level of the noise that was added to x
 * @property {number} epsilonSeed
 * @property {"axes" | "pca"} basis
 * @property {number} level that the plane shows, 0 for the one next to the data
 * @property {boolean} isBelowDrawn whether the levels below it are drawn, and not at their means
 * @property {number} belowSeed of these draws
 * @property {number} first coordinate on the horizontal axis
 * @property {number} second coordinate on the vertical axis
 * @property {{ x: number, y: number, span: number }} view middle and half width of the plane
 * @property {number} temperature
 * @property {number} sampleSeed
 * @property {number} completionSeed
 * @property {Float32Array} from
 * @property {Float32Array} to
 * @property {number} fraction of the path from A to B, from 0 to 1
 * @property {boolean} isPathShown
 * @property {boolean} isDataShown
 * @property {boolean} isManifoldShown
 * @property {boolean} isDraw whether the output is a draw of x instead of its mean
 * @property {boolean} isMoved whether z was moved by hand, and does not follow x
 * @property {number} colour column of a table that colours the plane, or -1 for the labels
 * @property {number} label that is highlighted, or -1
 * @property {Float32Array} y what x is conditioned on; empty if it is not
 */

export class State {
  /** @param {Values} values */
  constructor(values) {
    this.values = values;
    /** @type {{ keys: Set<string>, action: () => void }[]} */
    this.listeners = [];
    /** @type {Set<string>} */
    this.changed = new Set();
  }

  /** @param {Partial<Values>} patch */
  set(patch) {
    if (this.changed.size === 0) requestAnimationFrame(() => this.notify());
    Object.assign(this.values, patch);
    for (const key of Object.keys(patch)) this.changed.add(key);
  }

  /**
   * @param {(keyof Values)[]} keys
   * @param {() => void} action
   */
  on(keys, action) {
    this.listeners.push({ keys: new Set(keys), action });
  }

  notify() {
    const changed = this.changed;
    this.changed = new Set();
    for (const { keys, action } of this.listeners) {
      if ([...changed].some((key) => keys.has(key))) action();
    }
  }
}

/**
 * The state as the part of a URL after #.
 * @param {Values} values
 */
export function toHash(values) {
  const parts = new URLSearchParams();
  parts.set("z", short(values.z));
  if (values.source !== null) parts.set("x", String(values.source));
  else if (values.x && areLevels(values.x)) parts.set("xb", levels(values.x));
  else if (values.x) parts.set("xf", floats(values.x));
  if (values.missing.some(Boolean)) parts.set("m", bits(values.missing));
  if (values.noise) parts.set("n", String(values.noise));
  parts.set("p", [values.basis, values.first, values.second].join("."));
  if (values.level) parts.set("d", [values.level, Number(values.isBelowDrawn), values.belowSeed].join("."));
  parts.set("v", short([values.view.x, values.view.y, values.view.span]));
  parts.set("e", [values.epsilonSeed, values.sampleSeed, values.completionSeed].join("."));
  parts.set("t", short([values.temperature, values.fraction]));
  if (values.isPathShown) parts.set("ab", `${short(values.from)}~${short(values.to)}`);
  parts.set("s", [values.isDataShown, values.isManifoldShown, values.isDraw, values.isMoved].map(Number).join(""));
  if (values.colour >= 0) parts.set("c", String(values.colour));
  if (values.label >= 0) parts.set("l", String(values.label));
  if (values.y.length) parts.set("y", short(values.y));
  return parts.toString();
}

/**
 * The state in a URL. It may come from anyone: invalid entries are ignored.
 * @param {string} hash
 * @param {{ latentDim: number, levelSizes: number[], dataDim: number, numPoints: number, givenDim: number }} sizes
 * @returns {Partial<Values>}
 */
export function fromHash(hash, { latentDim: J, levelSizes, dataDim: D, numPoints, givenDim }) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {Partial<Values>} */
  const found = {};
  const z = numbers(parts.get("z"), J, 50);
  if (z) found.z = z;
  const source = whole(parts.get("x"), numPoints - 1);
  const x = attempt(() => readLevels(parts.get("xb"), D)) ?? attempt(() => readFloats(parts.get("xf"), D));
  if (source !== null) found.source = source;
  else if (x) Object.assign(found, { x, source: null });
  const missing = attempt(() => readBits(parts.get("m"), D));
  if (missing) found.missing = missing;
  const noise = numbers(parts.get("n"), 1, 10);
  if (noise && noise[0] > 0) found.noise = noise[0];
  const [kind, first, second] = (parts.get("p") ?? "").split(".");
  const [level, isBelowDrawn, belowSeed] = (parts.get("d") ?? "0.0.1").split(".").map((text) => whole(text, 1e6));
  const size = levelSizes[level ?? 0];
  const [a, b] = [whole(first, size - 1), whole(second, size - 1)];
  if ((kind === "axes" || kind === "pca") && a !== null && b !== null && (a !== b || size === 1)) {
    Object.assign(found, { basis: kind, first: a, second: b, level: level ?? 0 });
    Object.assign(found, { isBelowDrawn: isBelowDrawn === 1, belowSeed: belowSeed ?? 1 });
  }
  const view = numbers(parts.get("v"), 3, 50);
  if (view && view[2] > 0.005) found.view = { x: view[0], y: view[1], span: view[2] };
  const seeds = (parts.get("e") ?? "").split(".").map((seed) => whole(seed, 1e6));
  const names = /** @type {const} */ (["epsilonSeed", "sampleSeed", "completionSeed"]);
  names.forEach((name, i) => {
    if (seeds[i] !== null && seeds[i] !== undefined) found[name] = /** @type {number} */ (seeds[i]);
  });
  const rates = numbers(parts.get("t"), 2, 3);
  if (rates && rates[0] >= 0 && rates[1] >= 0 && rates[1] <= 1)
    Object.assign(found, { temperature: rates[0], fraction: rates[1] });
  const [from, to] = (parts.get("ab") ?? "").split("~").map((text) => numbers(text, J, 50));
  if (from && to) Object.assign(found, { from, to, isPathShown: true });
  if (/^[01]{3,4}$/.test(parts.get("s") ?? "")) {
    const [isDataShown, isManifoldShown, isDraw, isMoved = true] = [...(parts.get("s") ?? "")].map((f) => f === "1");
    Object.assign(found, { isDataShown, isManifoldShown, isDraw, isMoved });
  }
  const colour = whole(parts.get("c"), D - 1);
  if (colour !== null) found.colour = colour;
  const label = whole(parts.get("l"), 1000);
  if (label !== null) found.label = label;
  const y = numbers(parts.get("y"), givenDim, 1e6);
  if (y) found.y = y;
  return found;
}

/** @param {ArrayLike<number>} values */
function short(values) {
  return Array.from(values)
    .map((value) => String(Number(value.toFixed(4))))
    .join("_");
}

/**
 * @param {string | null | undefined} text
 * @param {number} count
 * @param {number} limit
 */
function numbers(text, count, limit) {
  if (!text) return null;
  const values = text.split("_").map(Number);
  const isGood = values.length === count && values.every((value) => Number.isFinite(value) && Math.abs(value) <= limit);
  return isGood ? Float32Array.from(values) : null;
}

/**
 * @param {string | null | undefined} text
 * @param {number} most
 */
function whole(text, most) {
  return text && /^\d{1,9}$/.test(text) && Number(text) <= most ? Number(text) : null;
}

/**
 * Whether all values are grey levels k/255: those fit into bytes.
 * @param {Float32Array} x
 */
function areLevels(x) {
  return x.every((value) => value >= 0 && value <= 1 && Math.abs(255 * value - Math.round(255 * value)) < 1e-4);
}

/** @param {Float32Array} x */
function levels(x) {
  return textOf(Uint8Array.from(x, (value) => Math.round(255 * value)));
}

/**
 * @param {string | null} text
 * @param {number} D
 */
function readLevels(text, D) {
  const bytes = text ? bytesOf(text) : null;
  return bytes && bytes.length === D ? Float32Array.from(bytes, (level) => level / 255) : null;
}

/** @param {Float32Array} x */
function floats(x) {
  return textOf(new Uint8Array(x.slice().buffer));
}

/**
 * @param {string | null} text
 * @param {number} D
 */
function readFloats(text, D) {
  const bytes = text ? bytesOf(text) : null;
  if (!bytes || bytes.length !== 4 * D) return null;
  const x = new Float32Array(bytes.buffer);
  return x.every(Number.isFinite) ? x : null;
}

/** @param {Uint8Array} flags */
function bits(flags) {
  const bytes = new Uint8Array(Math.ceil(flags.length / 8));
  flags.forEach((flag, i) => (bytes[i >> 3] |= (flag ? 1 : 0) << (i & 7)));
  return textOf(bytes);
}

/**
 * @param {string | null} text
 * @param {number} D
 */
function readBits(text, D) {
  const bytes = text ? bytesOf(text) : null;
  if (!bytes || bytes.length !== Math.ceil(D / 8)) return null;
  return Uint8Array.from({ length: D }, (_, i) => (bytes[i >> 3] >> (i & 7)) & 1);
}

/**
 * @template T
 * @param {() => T} action
 */
function attempt(action) {
  try {
    return action();
  } catch {
    return null;
  }
}
