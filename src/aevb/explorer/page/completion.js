// Draws from p(z | the observed part of x), by adaptive importance sampling.
//
// Population Monte Carlo (Cappé, Guillin, Marin and Robert, 2004). Each round draws z from a mixture of the prior and
// of Gaussians as wide as the encoder's q(z | completed x), for each completion of the previous round; weights them by
// p(z) p(observed x | z) / mixture(z); and resamples. Weighting by the whole mixture keeps the draws correct: a
// completion that suits the encoder but not the observed part is discarded.

import { logNormal } from "./levels.js";
import { logLikelihood } from "./model.js";
import { Random } from "./random.js";

/** @typedef {import("./model.js").AnyModel} AnyModel */
/** @typedef {import("./model.js").AnyLikelihood} AnyLikelihood */
/** @typedef {{ gaussian: import("./model.js").Gaussian | null, share: number }} Component a Gaussian, or null for p(z) */
/** @typedef {{ z: Float32Array, mean: Float32Array, draw: Float32Array }} Completion */
/** @typedef {{ z: Float32Array, p: AnyLikelihood, logWeights: Float64Array }} Pool all draws of a round */
/** @typedef {{ round: number, numRounds: number, completions: Completion[], effective: number, pool: Pool }} Progress */

const PRIOR_SHARE = 0.3;
const WIDER = 1.3; // proposals are wider than q: with lighter tails the weights would be unbounded

export class Completer {
  /**
   * @param {AnyModel} model
   * @param {Float32Array} x (D,) as observed
   * @param {Uint8Array} missing (D,)
   * @param {number} noise known level of the noise
   * @param {{ seed: number, numDraws?: number, numCompletions?: number, numRounds?: number }} options
   */
  constructor(model, x, missing, noise, { seed, numDraws = 96, numCompletions = 8, numRounds = 6 }) {
    this.model = model;
    this.x = x;
    this.missing = missing;
    this.noise = noise;
    this.random = new Random(seed);
    this.numDraws = numDraws;
    this.numCompletions = numCompletions;
    this.numRounds = numRounds;
    this.round = 0;
    /** @type {Component[]} */
    this.mixture = [{ gaussian: null, share: 1 }];
    if (model.table && model.encoder) {
      // This encoder reads incomplete rows: a better start than the prior alone.
      const q = model.encode(x, missing);
      const wide = { mu: q.mu, sigma: q.sigma.map((value) => WIDER * value) };
      this.mixture = [{ gaussian: null, share: PRIOR_SHARE }, { gaussian: wide, share: 1 - PRIOR_SHARE }];
    }
  }

  get isDone() {
    return this.round >= this.numRounds;
  }

  /** @returns {Progress} */
  step() {
    const { model, numDraws } = this;
    const J = model.latentDim;
    const z = this.propose(numDraws); // (n, J)
    const p = model.decode(z);
    const logLikelihoods = logLikelihood(model, p, this.x, this.missing, this.noise);
    const logWeights = logLikelihoods.map((value, s) => {
      const one = z.subarray(s * J, (s + 1) * J);
      return value + model.levels.logDensity(one) - logMixture(this.mixture, one, model.levels);
    });
    const weights = normalized(logWeights);
    const effective = 1 / weights.reduce((sum, weight) => sum + weight * weight, 0);
    const chosen = systematic(weights, this.numCompletions, this.random);
    const completions = chosen.map((s) => this.complete(z.slice(s * J, (s + 1) * J), p, s));
    this.mixture = this.nextMixture(completions);
    this.round += 1;
    return { round: this.round, numRounds: this.numRounds, completions, effective, pool: { z, p, logWeights } };
  }

  /** @param {number} n */
  propose(n) {
    const J = this.model.latentDim;
    const z = new Float32Array(n * J);
    const shares = this.mixture.map((component) => component.share);
    for (let s = 0; s < n; s++) {
      const { gaussian } = this.mixture[this.random.choose(shares)];
      if (!gaussian) z.set(this.model.levels.draws(this.random, 1), s * J);
      else for (let j = 0; j < J; j++) z[s * J + j] = gaussian.mu[j] + gaussian.sigma[j] * this.random.normal();
    }
    return z;
  }

  /**
   * The observed part unchanged, the rest from the decoder; if there is noise, everything from the decoder.
   * @param {Float32Array} z
   * @param {AnyLikelihood} p
   * @param {number} s
   * @returns {Completion}
   */
  complete(z, p, s) {
    const drawn = this.model.draw(p, this.random, s);
    const keep = (/** @type {number} */ i) => !this.missing[i] && !this.noise;
    const mean = this.model.mean(p, s).map((value, i) => (keep(i) ? this.x[i] : value));
    const draw = drawn.map((value, i) => (keep(i) ? this.x[i] : value));
    return { z, mean, draw };
  }

  /** @param {Completion[]} completions */
  nextMixture(completions) {
    const share = (1 - PRIOR_SHARE) / completions.length / 2;
    const kept = completions.flatMap(({ z, mean }) => {
      const q = this.model.encode(mean);
      // Half around the draw, which has already been weighted, and half around the encoder's mean, which has not.
      return [
        { gaussian: { mu: z, sigma: q.sigma.map((value) => WIDER * value) }, share },
        { gaussian: { mu: q.mu, sigma: q.sigma.map((value) => 2 * WIDER * value) }, share },
      ];
    });
    return [{ gaussian: null, share: PRIOR_SHARE }, ...kept];
  }
}

/**
 * @param {Component[]} mixture
 * @param {Float32Array} z
 * @param {import("./levels.js").Levels} prior
 */
function logMixture(mixture, z, prior) {
  const terms = mixture.map(
    ({ gaussian, share }) => Math.log(share) + (gaussian ? logNormal(z, gaussian) : prior.logDensity(z)),
  );
  const largest = Math.max(...terms);
  return largest + Math.log(terms.reduce((sum, term) => sum + Math.exp(term - largest), 0));
}

/** @param {Float64Array} logWeights */
export function normalized(logWeights) {
  const largest = Math.max(...logWeights);
  const weights = logWeights.map((value) => Math.exp(value - largest));
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

/**
 * Systematic resampling: the number of copies of each draw is proportional to its weight, up to rounding.
 * @param {Float64Array} weights
 * @param {number} count
 * @param {Random} random
 */
function systematic(weights, count, random) {
  const chosen = [];
  let place = 0;
  let reached = weights[0];
  for (let k = 0; k < count; k++) {
    const goal = (k + random.uniform()) / count;
    while (reached < goal && place < weights.length - 1) reached += weights[++place];
    chosen.push(place);
  }
  return chosen;
}
