// What all parts of the page share: the model, the datapoints and the state.

import { latentAxes, principalAxes } from "./basis.js";
import { Model } from "./model.js";
import { makePainter } from "./paint.js";
import { Random } from "./random.js";
import { State } from "./state.js";

/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {import("./basis.js").Basis} Basis */
/** @typedef {import("./model.js").Gaussian} Gaussian */
/** @typedef {import("./paint.js").Painter} Painter */
/**
 * @typedef {object} DataFacts
 * @property {number[] | null} offset of the columns: the model's input is x minus this
 * @property {number} row_scale
 * @property {number} num_held_out
 * @property {import("./palette.js").Labels} labels
 * @property {number[]} carried
 * @property {string} carried_kind
 * @property {boolean[]} active
 * @property {number[]} pca_variances
 * @property {[number, number]} range
 * @property {[number, number] | null} image_shape
 * @property {boolean} light_on_dark
 * @property {string[]} columns
 * @property {number | null} typical_bound
 * @property {string} binarization
 */
/**
 * @typedef {object} Facts
 * @property {string} title
 * @property {string} name
 * @property {string} version
 * @property {import("./model.js").Description} model
 * @property {DataFacts} data
 * @property {import("./arrays.js").Entry[]} arrays
 */

export const NUM_EPSILON = 16; // L: draws of epsilon for the bound

export class App {
  /**
   * @param {Facts} facts
   * @param {Map<string, NamedArray>} arrays
   */
  constructor(facts, arrays) {
    this.facts = facts;
    this.data = facts.data;
    this.model = new Model(facts.model, arrays);
    this.J = this.model.latentDim;
    this.D = this.model.dataDim;
    this.codes = values(arrays, "codes"); // (n, J)
    this.numPoints = this.codes.length / this.J;
    this.rows = values(arrays, "rows"); // (n, D)
    this.labels = arrays.get("labels")?.values ?? null;
    this.columns = { means: values(arrays, "column_means"), stds: values(arrays, "column_stds") };
    /** @type {Record<"axes" | "pca", Basis>} */
    this.bases = {
      axes: latentAxes(facts.data.carried, facts.data.carried_kind, facts.data.active),
      pca: principalAxes(values(arrays, "pca_directions"), values(arrays, "pca_center"), facts.data.pca_variances),
    };
    this.offset = facts.data.offset ?? new Array(this.D).fill(0);
    this.painter = makePainter(facts.data, this.offset, this.model.inUnitInterval, this.columns);
    this.state = new State(this.startingValues());
    /** Whether z follows the input x; not after it has been moved by hand. */
    this.isFollowing = true;
    /** @type {Gaussian | null} q(z|x) of the input, if nothing in it is missing */
    this.q = null;
    /** @type {Float32Array} its draws (L, J) */
    this.draws = new Float32Array(0);
    /** @type {Float32Array[]} z of the completions */
    this.particles = [];
    /** @type {Float32Array[]} z of the samples from the prior */
    this.samples = [];
    this.areSamplesShown = false;
  }

  get values() {
    return this.state.values;
  }

  get basis() {
    return this.bases[this.values.basis];
  }

  /**
   * Values in the units of the data, in double precision.
   * @param {Float32Array} x (D,), in the model's units
   */
  inUnits(x) {
    return Float64Array.from(x, (value, i) => value + this.offset[i]);
  }

  /**
   * The inverse of `inUnits`.
   * @param {ArrayLike<number>} values (D,)
   */
  fromUnits(values) {
    return Float32Array.from(values, (value, i) => value - this.offset[i]);
  }

  /** @param {number} number */
  point(number) {
    const scale = this.data.row_scale;
    return this.rows.slice(number * this.D, (number + 1) * this.D).map((value) => value * scale);
  }

  /** @param {number} number */
  code(number) {
    return this.codes.slice(number * this.J, (number + 1) * this.J);
  }

  /** The draws of epsilon, (L, J). */
  epsilon() {
    return new Random(this.values.epsilonSeed).normals(NUM_EPSILON * this.J);
  }

  /**
   * Set the input x; z moves to the mean of q(z|x).
   * @param {Partial<import("./state.js").Values>} patch
   */
  setInput(patch) {
    this.state.set(patch);
    this.isFollowing = true;
    const { x, missing } = this.values;
    if (x && this.model.encoder && !missing.some(Boolean)) this.state.set({ z: this.model.encode(x).mu });
  }

  /**
   * Use a datapoint as the input.
   * @param {number} number
   */
  pick(number) {
    this.state.set({ z: this.code(number) });
    this.setInput({ x: this.point(number), source: number, missing: new Uint8Array(this.D), noise: 0 });
  }

  /**
   * Move z by hand.
   * @param {Float32Array} z
   */
  moveTo(z) {
    this.isFollowing = false;
    this.state.set({ z });
  }

  /** @returns {import("./state.js").Values} */
  startingValues() {
    const { latentDim: J, dataDim: D } = this.model;
    const [one, other] = this.twoDifferent();
    return {
      z: this.code(one),
      x: this.point(one),
      source: one,
      missing: new Uint8Array(D),
      noise: 0,
      epsilonSeed: 1,
      basis: "axes",
      first: 0,
      second: Math.min(1, J - 1),
      view: this.wholeView("axes", 0, Math.min(1, J - 1)),
      temperature: 1,
      sampleSeed: 1,
      completionSeed: 1,
      from: this.code(one),
      to: this.code(other),
      fraction: 0.5,
      isPathShown: false,
      isDataShown: true,
      isManifoldShown: true,
      isDraw: false,
      label: -1,
    };
  }

  /**
   * A view that contains all but the farthest codes, and the middle of the prior.
   * @param {"axes" | "pca"} kind
   * @param {number} first
   * @param {number} second
   */
  wholeView(kind, first, second) {
    const [x, y] = [first, second].map((k) => {
      const values = Float32Array.from(
        { length: this.numPoints },
        (_, i) => this.bases[kind].coordinates(this.codes.subarray(i * this.J, (i + 1) * this.J))[k],
      ).sort();
      const [low, high] = [0.003, 0.997].map((share) => values[Math.round(share * (values.length - 1))]);
      return { low: Math.min(low, -2), high: Math.max(high, 2) };
    });
    const span = 0.55 * Math.max(x.high - x.low, y.high - y.low);
    return { x: (x.low + x.high) / 2, y: first === second ? 0 : (y.low + y.high) / 2, span: Math.min(span, 12) };
  }

  /** Zoom out to all of the chosen plane. */
  showAll() {
    const { basis, first, second } = this.values;
    this.state.set({ view: this.wholeView(basis, first, second) });
  }

  /** Two datapoints to start with: with different labels, if there are any, and typical of them. */
  twoDifferent() {
    const { labels } = this;
    if (!labels) return [0, this.farthest(0)];
    const candidates = Array.from({ length: Math.min(this.numPoints, 60) }, (_, i) => i);
    const best = candidates
      .map((i) => ({ i, numAlike: this.numAlike(i, labels) }))
      .sort((one, other) => other.numAlike - one.numAlike);
    const other = best.find(({ i }) => labels[i] !== labels[best[0].i]);
    return [best[0].i, other ? other.i : best[0].i];
  }

  /**
   * The datapoint whose code is farthest from that of a given one.
   * @param {number} i
   */
  farthest(i) {
    const squares = this.squares(i);
    return squares.indexOf(squares.reduce((most, square) => Math.max(most, square), 0));
  }

  /**
   * Squared distances of all codes from one of them.
   * @param {number} i
   */
  squares(i) {
    const { codes, J } = this;
    return Float32Array.from({ length: this.numPoints }, (_, k) => {
      let sum = 0;
      for (let j = 0; j < J; j++) sum += (codes[k * J + j] - codes[i * J + j]) ** 2;
      return sum;
    });
  }

  /**
   * How many of the ten datapoints with the nearest codes have the same label.
   * @param {number} i
   * @param {Float32Array} labels
   */
  numAlike(i, labels) {
    const squares = this.squares(i);
    const limit = squares.slice().sort()[Math.min(10, squares.length - 1)];
    return labels.filter((label, k) => squares[k] <= limit && label === labels[i]).length;
  }
}

/**
 * @param {Map<string, NamedArray>} arrays
 * @param {string} name
 */
function values(arrays, name) {
  const found = arrays.get(name);
  if (!found) throw new Error(`the page does not contain ${name}`);
  return found.values;
}
