// The lower bound of log p(x) and its two terms, in nats: estimator B of the paper, eq. (7), or A, eq. (6), where the KL
// divergence has no closed form.

import { logLikelihood } from "./model.js";

/** @typedef {import("./model.js").AnyModel} AnyModel */
/**
 * @typedef {object} Bound in nats
 * @property {import("./levels.js").Draws} draws of z, (L, J)
 * @property {number} reconstruction
 * @property {number} stdError of the reconstruction
 * @property {number} kl
 * @property {number[]} klOfLevels its parts, that of the level next to the data first
 * @property {number} bound
 */

/**
 * Draws from q(z|x) of one x, one for each epsilon.
 * @param {AnyModel} model
 * @param {Float32Array} x (D,)
 * @param {Float32Array} epsilon (L, J)
 * @param {Uint8Array | null} missing (D,)
 */
export function posteriorDraws(model, x, epsilon, missing = null) {
  const { mu, sigma } = model.first(x, missing);
  const repeated = (/** @type {Float32Array} */ values) => {
    const found = new Float32Array((epsilon.length / model.latentDim) * values.length);
    for (let start = 0; start < found.length; start += values.length) found.set(values, start);
    return found;
  };
  return model.levels.posterior({ mu: repeated(mu), sigma: repeated(sigma) }, epsilon);
}

/**
 * The bound of one datapoint: E log p(x|z) - KL(q(z|x) || p(z)), the first term estimated from the draws of epsilon.
 * If entries are missing, it is the bound of the observed ones.
 * @param {AnyModel} model
 * @param {Float32Array} x (D,)
 * @param {Float32Array} epsilon (L, J)
 * @param {Uint8Array | null} missing (D,)
 * @returns {Bound}
 */
export function lowerBound(model, x, epsilon, missing = null) {
  const draws = posteriorDraws(model, x, epsilon, missing);
  const terms = logLikelihood(model, model.decode(draws.z), x, missing);
  const reconstruction = terms.reduce((sum, term) => sum + term, 0) / terms.length;
  const variance = terms.reduce((sum, term) => sum + (term - reconstruction) ** 2, 0) / Math.max(terms.length - 1, 1);
  const klOfLevels = model.levels.divergences(draws);
  const kl = klOfLevels.reduce((sum, part) => sum + part, 0);
  const stdError = Math.sqrt(variance / terms.length);
  return { draws, reconstruction, stdError, kl, klOfLevels, bound: reconstruction - kl };
}
