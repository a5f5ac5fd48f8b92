// What all parts of the page share: the model, the datapoints and the state.

import { latentAxes, principalAxes } from "./basis.js";
import { Field } from "./fields.js";
import { Given } from "./given.js";
import { makeModel } from "./model.js";
import { makePainter } from "./paint.js";
import { Random } from "./random.js";
import { State } from "./state.js";

/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {import("./basis.js").Basis} Basis */
/** @typedef {import("./model.js").Gaussian} Gaussian */
/** @typedef {import("./paint.js").Painter} Painter */
/** @typedef {import("./palette.js").Labels} Labels */
/** @typedef {import("./prediction.js").Prediction} Prediction */
/** @typedef {{ labels: Labels, values: Float32Array | Float64Array | null }} Colouring what the colours of dots mean */
/**
 * @typedef {object} DataFacts
 * @property {number[] | null} offset of the columns: the model's input is x minus this
 * @property {number} row_scale
 * @property {number} num_held_out
 * @property {Labels} labels
 * @property {number[]} carried
 * @property {string} carried_kind
 * @property {boolean[]} active
 * @property {number[]} latent_loc origin of the coordinates
 * @property {number[]} latent_scale their unit
 * @property {number[]} pca_variances
 * @property {[number, number]} range
 * @property {number[] | null} image_shape (height, width), or (height, width, channels)
 * @property {boolean} light_on_dark
 * @property {import("./fields.js").FieldFacts[] | null} fields the columns of a table; null for images
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

const MOST_LINES = 60; // of columns that are all numbers
const MOST_COLOURS = 20; // labels of a column that colours the plane
export const NUM_EPSILON = 16; // L: draws of epsilon for the bound

export class App {
  /**
   * @param {Facts} facts
   * @param {Map<string, NamedArray>} arrays
   */
  constructor(facts, arrays) {
    this.facts = facts;
    this.data = facts.data;
    this.model = makeModel(facts.model, arrays);
    /** What x is conditioned on; null if it is not. */
    this.given = facts.model.given && new Given(facts.model.given, this.model, arrays, facts.model);
    this.givenRows = arrays.get("given")?.values ?? new Float32Array(0); // (n, D')
    this.J = this.model.latentDim;
    this.D = this.model.dataDim;
    this.codes = values(arrays, "codes"); // (n, J)
    this.numPoints = this.codes.length / this.J;
    this.rows = values(arrays, "rows"); // (n, D)
    this.labels = arrays.get("labels")?.values ?? null;
    this.columns = { means: values(arrays, "column_means"), stds: values(arrays, "column_stds") };
    this.levels = this.model.levels;
    const [directions, center] = [values(arrays, "pca_directions"), values(arrays, "pca_center")];
    /** @type {Record<"axes" | "pca", Basis>[]} of each level */
    this.bases = this.levels.sizes.map((_, level) => ({
      axes: latentAxes(facts.data, this.levels, level),
      pca: principalAxes(facts.data, directions, center, this.levels, level),
    }));
    this.offset = facts.data.offset ?? new Array(this.D).fill(0);
    /** @type {Field[]} the columns of a table; empty for images */
    this.fields = (facts.data.fields ?? []).map((field, i) => new Field(field, i, this.model));
    this.isTable = this.fields.length > 0;
    /** Whether columns have a line each; many columns of numbers are one curve. */
    this.isListed = this.isTable && (this.D <= MOST_LINES || this.model.table !== null);
    this.painter = makePainter(facts.data, this.offset, this.model.inUnitInterval, this.columns);
    /** @type {Map<number, Colouring>} */
    this.colourings = new Map();
    this.state = new State(this.startingValues());
    this.given?.use(this.values.y);
    /** @type {Prediction | null} what is expected of the columns of a table, given what is known */
    this.prediction = null;
    /** @type {Gaussian | null} q(z|x) of the input, if the encoder can read it */
    this.q = null;
    /** @type {import("./levels.js").Draws | null} its draws (L, J) */
    this.draws = null;
    /** @type {Float32Array[]} z of the completions */
    this.particles = [];
    /** @type {Float32Array[]} z of the samples from the prior */
    this.samples = [];
    this.areSamplesShown = false;
  }

  get values() {
    return this.state.values;
  }

  /** Whether z follows the input x; not after it has been moved by hand. */
  get isFollowing() {
    return !this.values.isMoved;
  }

  get basis() {
    return this.bases[this.values.level][this.values.basis];
  }

  /** The number of variables of the level that is shown. */
  get numShown() {
    return this.levels.sizes[this.values.level];
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
    const row = this.rows.slice(number * this.D, (number + 1) * this.D);
    return row.map((value, i) => (Number.isNaN(value) ? this.columns.means[i] : value * scale));
  }

  /**
   * Which entries of a datapoint are missing.
   * @param {number} number
   */
  gaps(number) {
    const row = this.rows.subarray(number * this.D, (number + 1) * this.D);
    return Uint8Array.from(row, (value) => Number(Number.isNaN(value)));
  }

  /**
   * The row of a table in words, after a separator; nothing for images.
   * @param {Float32Array} x
   */
  rowInWords(x) {
    if (!this.isTable || this.D > 40) return "";
    return `: ${this.fields.map((field, i) => `${field.name} ${field.cell(x[i])}`).join(", ")}`;
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
    this.state.set({ ...patch, isMoved: false });
    const { x, missing } = this.values;
    if (x && this.isEncodable) this.state.set({ z: this.model.encode(x, missing).mu });
  }

  /** Whether the encoder can read the input: all of it is known, or it has learned from incomplete rows. */
  get isEncodable() {
    const { x, missing } = this.values;
    return x !== null && this.model.encoder !== null && (this.model.encodesMissing || !missing.some(Boolean));
  }

  /**
   * What a datapoint is conditioned on; empty if it is not.
   * @param {number} number
   */
  pointY(number) {
    const size = this.given?.size ?? 0;
    return this.givenRows.slice(number * size, (number + 1) * size);
  }

  /**
   * The ends of what datapoints are conditioned on.
   * @param {number} i
   */
  givenEnds(i) {
    const size = this.given?.size ?? 1;
    const values = this.givenRows.filter((_, k) => k % size === i).sort();
    return [values[0] ?? 0, values[values.length - 1] ?? 1];
  }

  /**
   * Condition the model on another y; z stays what it is, or of M1+M2 the level above y.
   * @param {Float32Array} y
   */
  chooseY(y) {
    this.given?.use(y);
    this.state.set({ y });
    const { z } = this.values;
    this.jumpTo(this.levels.codes ? this.levels.descend(z, this.levels.last, this.noiseBelow()) : z);
  }

  /**
   * Use a datapoint as the input, and its y.
   * @param {number} number
   */
  pick(number) {
    if (this.given) {
      this.given.use(this.pointY(number));
      this.state.set({ y: this.pointY(number) });
    }
    this.state.set({ z: this.code(number) });
    this.setInput({ x: this.point(number), source: number, missing: this.gaps(number), noise: 0 });
  }

  /**
   * Use a row that is drawn from the model as the input.
   * @param {number} seed
   */
  drawRow(seed) {
    const random = new Random(seed);
    const p = this.model.decode(this.levels.draws(random, 1));
    const x = this.model.draw(p, random).map((value, i) => this.fields[i]?.valid(value) ?? value);
    const missing = new Uint8Array(this.D);
    this.fields.forEach(({ facts }, i) => facts.about !== undefined && x[i] === 1 && (missing[facts.about] = 1));
    this.setInput({ x, source: null, missing, noise: 0 });
  }

  /**
   * Move the level that is shown by hand; the levels below follow.
   * @param {Float32Array} z (J,)
   */
  moveTo(z) {
    this.jumpTo(this.settled(z));
  }

  /**
   * Move all levels.
   * @param {Float32Array} z (J,)
   */
  jumpTo(z) {
    this.state.set({ z, isMoved: true });
  }

  /**
   * Several z with the levels below the one that is shown at their means, or drawn with the current noise.
   * @param {Float32Array} z (n, J)
   */
  settled(z) {
    const { level } = this.values;
    return level === 0 ? z : this.levels.descend(z, level, this.noiseBelow());
  }

  /** The noise of the levels below the one that is shown, (J,); zero if they are at their means. */
  noiseBelow() {
    const { isBelowDrawn, belowSeed } = this.values;
    return isBelowDrawn ? new Random(belowSeed).normals(this.J) : new Float32Array(this.J);
  }

  /**
   * Show the plane of another level.
   * @param {number} level
   */
  showLevel(level) {
    this.state.set({ level, first: 0, second: Math.min(1, this.levels.sizes[level] - 1) });
    this.showAll();
  }

  /**
   * p of the level that is shown, given the one above it at its current z; null if it is not a Gaussian.
   * @returns {Gaussian | null} (J,), of which only that level counts
   */
  priorHere() {
    const { level, z } = this.values;
    const p = this.levels.priorAt(level, z);
    if (!p) return null;
    const found = { mu: z.slice(), sigma: new Float32Array(this.J) };
    this.levels.put(found.mu, level, p.mu);
    this.levels.put(found.sigma, level, p.sigma);
    return found;
  }

  /** The highest level of which at least two variables are active. */
  startingLevel() {
    const { active } = this.data;
    const isInUse = (/** @type {number} */ level) => this.levels.places(level).filter((j) => active[j]).length > 1;
    let level = this.levels.last;
    while (level > 0 && !isInUse(level)) level -= 1;
    return level;
  }

  /**
   * Whether a column of a table can colour the plane.
   * @param {number} i
   */
  canColour(i) {
    return i < this.fields.length && this.fields[i].levels.length <= MOST_COLOURS;
  }

  /**
   * What the colours of the datapoints mean: a column of a table, or the labels.
   * @param {number} [column] -1 for the labels
   * @returns {Colouring}
   */
  colouring(column = this.values.colour) {
    if (column < 0) return { labels: this.data.labels, values: this.labels };
    let found = this.colourings.get(column);
    if (!found) {
      const field = this.fields[column];
      const scale = this.data.row_scale;
      const stored = Float64Array.from({ length: this.numPoints }, (_, k) => this.rows[k * this.D + column] * scale);
      /** @type {Labels} */
      const labels = field.hasLevels
        ? { kind: "classes", names: field.levels }
        : {
            kind: "quantity",
            range: [field.ends[0], field.ends[1]],
            scale: field.scale.to,
            text: (value) => field.number(value),
          };
      found = { labels, values: field.hasLevels ? stored : stored.map((u) => field.shown(u)) };
      this.colourings.set(column, found);
    }
    return found;
  }

  /** The column with few labels that codes depend on most, to colour a plane without labels; -1 if there is none. */
  tellingColumn() {
    const told = this.fields.map(({ levels }, i) => {
      if (!levels.length || levels.length > 10) return 0;
      return Math.max(...[0, 1].map((k) => this.correlationRatio(i, levels.length, Math.min(k, this.J - 1))));
    });
    const best = told.indexOf(Math.max(...told));
    return told[best] > 0.05 ? best : -1;
  }

  /**
   * The share of the variance of a coordinate of the codes that is between the labels of a column.
   * @param {number} column
   * @param {number} numLevels
   * @param {number} k
   */
  correlationRatio(column, numLevels, k) {
    const sums = Array.from({ length: numLevels }, () => [0, 0]);
    let [count, sum, squares] = [0, 0, 0];
    for (let s = 0; s < this.numPoints; s++) {
      const code = this.rows[s * this.D + column];
      if (Number.isNaN(code)) continue;
      const value = this.bases[0].axes.coordinates(this.codes.subarray(s * this.J, (s + 1) * this.J))[k];
      sums[code][0] += 1;
      sums[code][1] += value;
      [count, sum, squares] = [count + 1, sum + value, squares + value * value];
    }
    const middle = sum ** 2 / (count || 1);
    const between = sums.reduce((total, [n, part]) => total + (n ? part ** 2 / n : 0), 0) - middle;
    return squares > middle ? between / (squares - middle) : 0;
  }

  /** @returns {import("./state.js").Values} */
  startingValues() {
    const { latentDim: J, dataDim: D } = this.model;
    const [one, other] = this.twoDifferent();
    const level = this.startingLevel();
    const second = Math.min(1, this.levels.sizes[level] - 1);
    const isUnknown = this.isListed && this.model.encoder !== null; // nothing is known at first
    return {
      z: isUnknown ? new Float32Array(J) : this.code(one),
      x: isUnknown ? this.columns.means.slice() : this.point(one),
      source: isUnknown ? null : one,
      missing: isUnknown ? new Uint8Array(D).fill(1) : this.gaps(one),
      noise: 0,
      epsilonSeed: 1,
      basis: "axes",
      first: 0,
      second,
      level,
      isBelowDrawn: false,
      belowSeed: 1,
      view: this.wholeView(this.bases[level].axes, 0, second),
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
      isMoved: false,
      colour: this.labels || !this.isTable ? -1 : this.tellingColumn(),
      label: -1,
      y: this.pointY(one),
    };
  }

  /**
   * A view that contains all but the farthest codes, and the middle of the prior.
   * @param {Basis} basis
   * @param {number} first
   * @param {number} second
   */
  wholeView(basis, first, second) {
    const [x, y] = [first, second].map((k) => {
      const values = Float32Array.from(
        { length: this.numPoints },
        (_, i) => basis.coordinates(this.codes.subarray(i * this.J, (i + 1) * this.J))[k],
      ).sort();
      const [low, high] = [0.003, 0.997].map((share) => values[Math.round(share * (values.length - 1))]);
      return { low: Math.min(low, -2), high: Math.max(high, 2) };
    });
    const span = 0.55 * Math.max(x.high - x.low, y.high - y.low);
    return { x: (x.low + x.high) / 2, y: first === second ? 0 : (y.low + y.high) / 2, span: Math.min(span, 12) };
  }

  /** Zoom out to all of the chosen plane. */
  showAll() {
    const { first, second } = this.values;
    this.state.set({ view: this.wholeView(this.basis, first, second) });
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
