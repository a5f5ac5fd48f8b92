// p(y|x) of a regressor: the average of p(y|x, z) over draws of z from p(z|x).

import { Given } from "./given.js";
import { makeModel } from "./model.js";
import { apply, findNetwork, gaussianOf } from "./network.js";
import { QUANTILES } from "./prediction.js";
import { Random } from "./random.js";
import { featuresOf } from "./table_model.js";

/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {import("./table_model.js").TableModel} TableModel */
/**
 * What is predicted of one target.
 * @typedef {object} Predicted
 * @property {number} mean in the units of the columns; NaN for levels
 * @property {number[]} quantiles of stored numbers, at QUANTILES; empty for levels
 * @property {number[]} shares of the levels; empty for numbers
 * @property {(u: number) => number} density of a number in the units of the columns, at a stored number
 */

const DRAWS_PER_Z = 4; // of y
const MIXED = ["lognormal", "bounded", "histogram", "quantile-gaussian"]; // whose mean is not that of the stored numbers

export class Predictor {
  /**
   * @param {import("./model.js").Description} description
   * @param {Map<string, NamedArray>} arrays
   */
  constructor(description, arrays) {
    if (!description.given) throw new Error("the page does not contain the inputs");
    this.model = /** @type {TableModel} */ (makeModel(description, arrays));
    this.facts = description.given;
    this.given = new Given(description.given, this.model, arrays, description);
    this.prior = findNetwork(arrays, "prior", description.activation); // null for N(0, I)
  }

  /**
   * p(z|x).
   * @param {Float32Array} x stored numbers
   * @param {Uint8Array | null} missing
   */
  priorAt(x, missing) {
    const J = this.model.latentDim;
    if (!this.prior) return { mu: new Float32Array(J), sigma: new Float32Array(J).fill(1) };
    return gaussianOf(apply(this.prior, featuresOf(this.facts, x, missing)), J);
  }

  /**
   * The distribution of each target. The noise is always the same, so that it moves smoothly with x.
   * @param {Float32Array} x stored numbers
   * @param {Uint8Array | null} missing
   * @param {number} numDraws of z
   * @returns {Predicted[]}
   */
  predict(x, missing, numDraws = 500) {
    const { model } = this;
    this.given.use(x, missing);
    const random = new Random(1);
    const { mu, sigma } = this.priorAt(x, missing);
    const z = random.normals(numDraws * mu.length).map((value, i) => mu[i % mu.length] + sigma[i % mu.length] * value);
    const p = model.decode(z);
    return model.families.map((family, i) => {
      const thetas = Array.from({ length: numDraws }, (_, s) => model.theta(p, s, i));
      const { probabilities } = family;
      const average = (/** @type {(theta: any) => number} */ f) => thetas.reduce((sum, theta) => sum + f(theta), 0) / numDraws;
      const density = (/** @type {number} */ u) =>
        average((theta) => Math.exp(family.logProb(theta, u))) / Math.exp(family.units.logSlope(u, model.table.columns[i]));
      if (probabilities && !MIXED.includes(model.table.columns[i].family)) {
        const all = thetas.map((theta) => probabilities(theta));
        const shares = all[0].map((_, k) => all.reduce((sum, one) => sum + one[k], 0) / numDraws);
        return { mean: NaN, quantiles: [], shares, density };
      }
      const draws = new Float64Array(numDraws * DRAWS_PER_Z).map((_, k) => family.draw(thetas[k % numDraws], random)).sort();
      const isMixed = MIXED.includes(model.table.columns[i].family);
      const mean = isMixed
        ? draws.reduce((sum, u) => sum + model.toUnits(u, i), 0) / draws.length
        : model.toUnits(average((theta) => family.guess(theta)), i);
      return { mean, quantiles: QUANTILES.map((share) => quantile(draws, share)), shares: [], density };
    });
  }
}

/**
 * @param {Float64Array} sorted
 * @param {number} share
 */
function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  return sorted[below] + (place - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
}
