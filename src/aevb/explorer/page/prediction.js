// What the model expects of the columns of a table: averages over draws of z.
//
// An unknown column i has the distribution p(x_i | known columns), the average of p(x_i|z) with the weights of
// draws from p(z | known columns). For a known column the page asks what the other known columns say about it, which is
// the same average with the weights divided by p(x_i|z).

import { normalized } from "./completion.js";
import { Random } from "./random.js";

/** @typedef {import("./model.js").AnyModel} AnyModel */
/**
 * @typedef {object} Expected
 * @property {number[]} quantiles of a number, at QUANTILES; empty for levels
 * @property {number[]} shares of the levels; empty for numbers
 */

export const QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95];
const LEAST_EFFECTIVE = 8; // draws of z, below which nothing is said
const NUM_DRAWS = 400; // of x at one z

export class Prediction {
  /**
   * @param {AnyModel} model
   * @param {Float32Array} x (D,)
   * @param {Uint8Array} missing (D,)
   * @param {number} seed
   */
  constructor(model, x, missing, seed) {
    this.model = model;
    this.x = x;
    this.missing = missing;
    this.random = new Random(seed);
    this.columns = Array.from(x, () => ({
      /** @type {number[]} */ values: [],
      /** @type {number[]} */ weights: [],
      /** @type {number[]} */ shares: [],
      effective: 0,
    }));
    /** The posterior mean of z, times the sum of the weights. */
    this.sum = new Float64Array(model.latentDim);
    this.effective = 0;
  }

  /**
   * What the decoder gives at one z, without regard to what is known.
   * @param {AnyModel} model
   * @param {Float32Array} z (J,)
   * @param {number} seed
   */
  static at(model, z, seed) {
    const D = model.dataDim;
    const found = new Prediction(model, new Float32Array(D), new Uint8Array(D).fill(1), seed);
    const p = model.decode(z);
    const weights = new Float64Array(1).fill(1);
    for (let i = 0; i < D; i++) {
      const repeats = model.probabilities(p, 0, i) ? 1 : NUM_DRAWS;
      for (let k = 0; k < repeats; k++) found.addColumn(i, p, weights, NUM_DRAWS / repeats);
    }
    return found;
  }

  /**
   * Add the draws of a round. Each round is weighted by its effective number of draws.
   * @param {import("./completion.js").Pool} pool
   */
  add({ z, p, logWeights }) {
    const J = this.model.latentDim;
    const weights = normalized(logWeights);
    const effective = effectiveOf(weights);
    weights.forEach((weight, s) => {
      for (let j = 0; j < J; j++) this.sum[j] += effective * weight * z[s * J + j];
    });
    this.effective += effective;
    this.x.forEach((value, i) => {
      if (this.missing[i]) return this.addColumn(i, p, weights, effective);
      const without = normalized(logWeights.map((log, s) => log - this.model.logProb(p, s, i, value)));
      this.addColumn(i, p, without, effectiveOf(without));
    });
  }

  /**
   * @param {number} i
   * @param {import("./model.js").AnyLikelihood} p
   * @param {Float64Array} weights
   * @param {number} effective
   */
  addColumn(i, p, weights, effective) {
    const { model, random } = this;
    const column = this.columns[i];
    column.effective += effective;
    weights.forEach((weight, s) => {
      const shares = model.probabilities(p, s, i);
      shares?.forEach((share, k) => (column.shares[k] = (column.shares[k] ?? 0) + effective * weight * share));
      // Of a grey level, the distribution of its mean.
      if (shares && !model.isBernoulli) return;
      column.values.push(shares ? shares[1] : model.drawColumn(p, random, s, i));
      column.weights.push(effective * weight);
    });
  }

  /** The posterior mean of z. */
  get z() {
    return Float32Array.from(this.sum, (value) => value / this.effective);
  }

  /**
   * @param {number} i
   * @returns {Expected | null} null if there are too few draws for a statement
   */
  of(i) {
    const { values, weights, shares, effective } = this.columns[i];
    if (effective < LEAST_EFFECTIVE) return null;
    const total = shares.reduce((sum, share) => sum + share, 0);
    return { quantiles: quantilesOf(values, weights), shares: shares.map((share) => share / total) };
  }
}

/** @param {Float64Array} weights that sum to 1 */
function effectiveOf(weights) {
  return 1 / weights.reduce((sum, weight) => sum + weight * weight, 0);
}

/**
 * @param {number[]} values
 * @param {number[]} weights
 */
function quantilesOf(values, weights) {
  if (!values.length) return [];
  const order = values.map((_, k) => k).sort((a, b) => values[a] - values[b]);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  let place = 0;
  let reached = weights[order[0]];
  return QUANTILES.map((share) => {
    while (reached < share * total && place < order.length - 1) reached += weights[order[++place]];
    return values[order[place]];
  });
}
