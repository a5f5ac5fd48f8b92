// The model: p(z) = N(0, I), p(x|z) and q(z|x), with parameters computed by networks.

import { apply, findNetwork, sigmoid, softplus } from "./network.js";

/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {import("./network.js").Network} Network */
/** @typedef {{ mu: Float32Array, sigma: Float32Array }} Gaussian independent variables */
/**
 * The parameters of p(x|z): logits of Bernoulli variables, or means and standard deviations of Gaussian ones.
 * @typedef {{ logits: Float32Array | null, mu: Float32Array, sigma: Float32Array | null }} Likelihood
 */
/**
 * @typedef {object} Description as in the model file
 * @property {number} latent_dim
 * @property {number[]} hidden
 * @property {string} activation
 * @property {string} learner
 * @property {string} learner_name
 * @property {boolean} has_weight_posterior
 * @property {string} likelihood
 * @property {number} data_dim
 * @property {boolean} has_encoder
 */

const LOG_2_PI = Math.log(2 * Math.PI);

export class Model {
  /**
   * @param {Description} description
   * @param {Map<string, NamedArray>} arrays
   */
  constructor(description, arrays) {
    const decoder = findNetwork(arrays, "decoder", description.activation);
    if (!decoder) throw new Error("the page does not contain a decoder");
    this.latentDim = description.latent_dim;
    this.dataDim = description.data_dim;
    this.isBernoulli = description.likelihood === "bernoulli";
    this.isSigmoid = description.likelihood === "sigmoid-gaussian";
    this.inUnitInterval = this.isBernoulli || this.isSigmoid;
    this.decoder = decoder;
    this.encoder = findNetwork(arrays, "encoder", description.activation);
    const named = [...arrays].filter(([name]) => name.includes(".decoder.units."));
    /** Means and standard deviations of the columns: the networks of a Gaussian model work in these units. */
    this.units = named.length ? { loc: valuesOf(named, "loc"), scale: valuesOf(named, "scale") } : null;
  }

  /**
   * q(z|x): its mean and standard deviations.
   * @param {Float32Array} x (n, D)
   * @returns {Gaussian} (n, J) each
   */
  encode(x) {
    if (!this.encoder) throw new Error("the model has no encoder");
    const { units, dataDim: D, latentDim: J } = this;
    const input = units ? x.map((value, i) => (value - units.loc[i % D]) / units.scale[i % D]) : x;
    const { mu, logVariance } = halves(apply(this.encoder, input), J);
    return { mu, sigma: logVariance.map((v) => Math.exp(v / 2)) };
  }

  /**
   * p(x|z) at several z.
   * @param {Float32Array} z (n, J)
   * @returns {Likelihood} (n, D) each
   */
  decode(z) {
    const y = apply(this.decoder, z);
    if (this.isBernoulli) return { logits: y, mu: y.map(sigmoid), sigma: null };
    const { mu, logVariance } = halves(y, this.dataDim);
    const sigma = logVariance.map((v) => Math.exp(v / 2));
    if (this.isSigmoid) for (let i = 0; i < mu.length; i++) mu[i] = sigmoid(mu[i]);
    if (this.units) {
      const { loc, scale } = this.units;
      for (let i = 0; i < mu.length; i++) {
        const column = i % this.dataDim;
        mu[i] = loc[column] + scale[column] * mu[i];
        sigma[i] *= scale[column];
      }
    }
    return { logits: null, mu, sigma };
  }

  /**
   * log p(x|z) in nats of the observed part of x, for each of several p(x|z).
   * @param {Likelihood} p (n, D)
   * @param {Float32Array} x (D,)
   * @param {Uint8Array | null} missing (D,): 1 where x is not known
   * @param {number} noise known level of the noise in x, see `corrupt`
   * @returns {Float64Array} (n,)
   */
  logLikelihood(p, x, missing = null, noise = 0) {
    const D = this.dataDim;
    const n = p.mu.length / D;
    const values = new Float64Array(n);
    for (let s = 0; s < n; s++) {
      let sum = 0;
      for (let i = 0; i < D; i++) {
        if (missing && missing[i]) continue;
        const place = s * D + i;
        if (p.logits) {
          const log = x[i] * p.logits[place] - softplus(p.logits[place]);
          sum += noise ? Math.log((1 - noise) * Math.exp(log) + noise / 2) : log;
        } else if (p.sigma) {
          const extra = noise * this.noiseUnit(i);
          const variance = p.sigma[place] ** 2 + extra ** 2;
          sum -= ((x[i] - p.mu[place]) ** 2 / variance + Math.log(variance) + LOG_2_PI) / 2;
        }
      }
      values[s] = sum;
    }
    return values;
  }

  /**
   * A draw x ~ p(x|z).
   * @param {Likelihood} p of one z
   * @param {import("./random.js").Random} random
   */
  draw(p, random) {
    const { mu, sigma } = p;
    if (!sigma) return mu.map((probability) => (random.uniform() < probability ? 1 : 0));
    return mu.map((mean, i) => mean + sigma[i] * random.normal());
  }

  /**
   * Add noise. For Bernoulli variables the level is the fraction that is replaced by 0 or 1; for others it is the
   * standard deviation of the noise, in units of the columns' standard deviations.
   * @param {Float32Array} x
   * @param {number} level
   * @param {import("./random.js").Random} random
   */
  corrupt(x, level, random) {
    if (this.isBernoulli) return x.map((value) => (random.uniform() < level ? Number(random.uniform() < 0.5) : value));
    return x.map((value, i) => value + level * this.noiseUnit(i) * random.normal());
  }

  /** @param {number} column */
  noiseUnit(column) {
    return this.units ? this.units.scale[column] : 1;
  }
}

/**
 * @param {[string, NamedArray][]} named
 * @param {string} ending
 */
function valuesOf(named, ending) {
  const found = named.find(([name]) => new RegExp(`\\.${ending}'?\\]?$`).test(name));
  if (!found) throw new Error(`the units of the data have no ${ending}`);
  return found[1].values;
}

/**
 * Outputs (n, 2 K) as means and log variances, (n, K) each.
 * @param {Float32Array} outputs
 * @param {number} K
 */
function halves(outputs, K) {
  const n = outputs.length / (2 * K);
  const mu = new Float32Array(n * K);
  const logVariance = new Float32Array(n * K);
  for (let s = 0; s < n; s++) {
    mu.set(outputs.subarray(2 * s * K, (2 * s + 1) * K), s * K);
    logVariance.set(outputs.subarray((2 * s + 1) * K, (2 * s + 2) * K), s * K);
  }
  return { mu, logVariance };
}
