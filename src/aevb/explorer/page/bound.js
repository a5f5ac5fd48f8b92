// The lower bound of log p(x) and its two terms, in nats: estimator B of the paper, eq. (7), or A, eq. (6), where the KL
// divergence has no closed form.

import { logLikelihood } from "./model.js";

/** @typedef {import("./model.js").AnyModel} AnyModel */
/** @typedef {import("./model.js").Gaussian} Gaussian */
/**
 * @typedef {object} Bound in nats
 * @property {Gaussian} q
 * @property {Float32Array} z the draws (L, J)
 * @property {number} reconstruction
 * @property {number} stdError of the reconstruction
 * @property {number} kl
 * @property {number} bound
 */

/**
 * z = mu + sigma * epsilon, for several epsilon.
 * @param {Gaussian} q
 * @param {Float32Array} epsilon (L, J)
 */
export function reparameterize(q, epsilon) {
  const J = q.mu.length;
  return epsilon.map((value, i) => q.mu[i % J] + q.sigma[i % J] * value);
}

/**
 * KL(q || N(0, I)), appendix B.
 * @param {Gaussian} q
 */
export function klDivergence({ mu, sigma }) {
  let sum = 0;
  for (let j = 0; j < mu.length; j++) {
    const v = 2 * Math.log(sigma[j]);
    sum += (mu[j] ** 2 + Math.expm1(v) - v) / 2;
  }
  return sum;
}

/**
 * The average of log q(z) - log p(z) over draws of z: an estimate of KL(q || p).
 * @param {AnyModel} model
 * @param {Gaussian} q
 * @param {Float32Array} z (L, J)
 */
function sampledDivergence(model, { mu, sigma }, z) {
  const J = mu.length;
  let sum = 0;
  for (let start = 0; start < z.length; start += J) {
    const one = z.subarray(start, start + J);
    one.forEach((value, j) => {
      sum -= ((value - mu[j]) / sigma[j]) ** 2 / 2 + Math.log(sigma[j]) + Math.log(2 * Math.PI) / 2;
    });
    sum -= model.prior.logDensity(one);
  }
  return (sum * J) / z.length;
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
  const q = model.encode(x, missing);
  const z = reparameterize(q, epsilon);
  const terms = logLikelihood(model, model.decode(z), x, missing);
  const reconstruction = terms.reduce((sum, term) => sum + term, 0) / terms.length;
  const variance = terms.reduce((sum, term) => sum + (term - reconstruction) ** 2, 0) / Math.max(terms.length - 1, 1);
  const kl = model.prior.isStandard ? klDivergence(q) : sampledDivergence(model, q, z);
  const stdError = Math.sqrt(variance / terms.length);
  return { q, z, reconstruction, stdError, kl, bound: reconstruction - kl };
}
