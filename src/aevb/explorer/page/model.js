// The model: p(z), p(x|z) and q(z|x), with parameters computed by networks.

import { findAny, run } from "./conv.js";
import { Levels } from "./levels.js";
import { gaussianOf, sigmoid, softplus } from "./network.js";
import { TableModel } from "./table_model.js";

/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {import("./network.js").Gaussian} Gaussian */
/**
 * The parameters of p(x|z): logits of Bernoulli variables, or means and standard deviations of Gaussian ones.
 * @typedef {{ logits: Float32Array | null, mu: Float32Array, sigma: Float32Array | null, length: number }} Likelihood
 */
/**
 * @typedef {object} Description as in the model file
 * @property {number} latent_dim of all levels together
 * @property {number[]} levels the number of variables of each, that next to the data first
 * @property {boolean} is_ladder whether q draws levels from the top down
 * @property {number[]} hidden
 * @property {string} network
 * @property {number[] | null} image_shape (height, width, channels) for networks of images
 * @property {string} activation
 * @property {string} learner
 * @property {string} learner_name
 * @property {boolean} has_weight_posterior
 * @property {string} likelihood
 * @property {number} data_dim
 * @property {boolean} has_encoder
 * @property {import("./table_model.js").TableFacts | null} table
 * @property {import("./levels.js").CodesRead | null} codes of M1+M2, what its second level reads of the first
 * @property {import("./prior.js").Mixture | null} prior of the last level; null for N(0, I)
 * @property {import("./given.js").GivenFacts | null} given what x is conditioned on, if anything
 */

const LOG_2_PI = Math.log(2 * Math.PI);

export class Model {
  table = null;
  encodesMissing = false;

  /**
   * @param {Description} description
   * @param {Map<string, NamedArray>} arrays
   */
  constructor(description, arrays) {
    const decoder = findAny(arrays, "decoder", description);
    if (!decoder) throw new Error("the page does not contain a decoder");
    this.latentDim = description.latent_dim;
    this.dataDim = description.data_dim;
    this.isBernoulli = description.likelihood === "bernoulli";
    this.isSigmoid = description.likelihood === "sigmoid-gaussian";
    this.inUnitInterval = this.isBernoulli || this.isSigmoid;
    this.levels = new Levels(description, arrays);
    this.decoder = decoder;
    this.encoder = findAny(arrays, "encoder", description);
    const named = [...arrays].filter(([name]) => /\.decoder(?:\.conditional)*\.units\./.test(name));
    /** Means and standard deviations of the columns: the networks of a Gaussian model work in these units. */
    this.units = named.length ? { loc: valuesOf(named, "loc"), scale: valuesOf(named, "scale") } : null;
  }

  /**
   * q(z|x): its mean and standard deviations, of each level given the means of those before.
   * @param {Float32Array} x (n, D)
   * @param {Uint8Array | null} [missing]
   * @returns {Gaussian} (n, J) each
   */
  encode(x, missing = null) {
    return this.levels.posterior(this.first(x, missing));
  }

  /**
   * What the encoder says of the level next to the data.
   * @param {Float32Array} x (n, D)
   * @param {Uint8Array | null} _missing which this encoder does not see
   * @returns {Gaussian}
   */
  first(x, _missing) {
    if (!this.encoder) throw new Error("the model has no encoder");
    return gaussianOf(run(this.encoder, this.inputs(x, null)), this.levels.sizes[0]);
  }

  /**
   * The encoder's input.
   * @param {Float32Array} x (n, D)
   * @param {Uint8Array | null} _missing which this encoder does not see
   */
  inputs(x, _missing) {
    const { units, dataDim: D } = this;
    return units ? x.map((value, i) => (value - units.loc[i % D]) / units.scale[i % D]) : x;
  }

  /**
   * p(x|z) at several z.
   * @param {Float32Array} z (n, J)
   * @returns {Likelihood} (n, D) each
   */
  decode(z) {
    const y = run(this.decoder, this.levels.part(z, 0));
    const length = z.length / this.latentDim;
    if (this.isBernoulli) return { logits: y, mu: y.map(sigmoid), sigma: null, length };
    const { mu, sigma } = gaussianOf(y, this.dataDim);
    if (this.isSigmoid) for (let i = 0; i < mu.length; i++) mu[i] = sigmoid(mu[i]);
    if (this.units) {
      const { loc, scale } = this.units;
      for (let i = 0; i < mu.length; i++) {
        const column = i % this.dataDim;
        mu[i] = loc[column] + scale[column] * mu[i];
        sigma[i] *= scale[column];
      }
    }
    return { logits: null, mu, sigma, length };
  }

  /**
   * log p(x_i|z) in nats.
   * @param {Likelihood} p
   * @param {number} s
   * @param {number} i
   * @param {number} value
   * @param {number} noise known level of the noise in x, see `corrupt`
   */
  logProb(p, s, i, value, noise = 0) {
    const place = s * this.dataDim + i;
    if (p.sigma) {
      const variance = p.sigma[place] ** 2 + (noise * this.noiseUnit(i)) ** 2;
      return -((value - p.mu[place]) ** 2 / variance + Math.log(variance) + LOG_2_PI) / 2;
    }
    const logit = p.logits ? p.logits[place] : 0;
    const log = value * logit - softplus(logit);
    return noise ? Math.log((1 - noise) * Math.exp(log) + noise / 2) : log;
  }

  /**
   * The mean of p(x|z).
   * @param {Likelihood} p
   * @param {number} s
   * @returns {Float32Array} (D,)
   */
  mean(p, s = 0) {
    return p.mu.slice(s * this.dataDim, (s + 1) * this.dataDim);
  }

  /**
   * @param {Likelihood} p
   * @param {number} s
   * @param {number} i
   */
  meanColumn(p, s, i) {
    return p.mu[s * this.dataDim + i];
  }

  /**
   * A draw x ~ p(x|z).
   * @param {Likelihood} p
   * @param {import("./random.js").Random} random
   * @param {number} s
   */
  draw(p, random, s = 0) {
    return Float32Array.from({ length: this.dataDim }, (_, i) => this.drawColumn(p, random, s, i));
  }

  /**
   * @param {Likelihood} p
   * @param {import("./random.js").Random} random
   * @param {number} s
   * @param {number} i
   */
  drawColumn({ mu, sigma }, random, s, i) {
    const place = s * this.dataDim + i;
    return sigma ? mu[place] + sigma[place] * random.normal() : Number(random.uniform() < mu[place]);
  }

  /**
   * The probabilities of 0 and 1 of a column, or null if it is a number.
   * @param {Likelihood} p
   * @param {number} s
   * @param {number} i
   */
  probabilities(p, s, i) {
    const mean = p.mu[s * this.dataDim + i];
    return this.isBernoulli ? [1 - mean, mean] : null;
  }

  /**
   * @param {number} value of a column, as the networks read it
   * @param {number} _i
   */
  toUnits(value, _i) {
    return value;
  }

  /**
   * @param {number} value
   * @param {number} _i
   */
  fromUnits(value, _i) {
    return this.inUnitInterval ? Math.min(Math.max(value, 0), 1) : value;
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

/** @typedef {{ decode: (z: Float32Array) => AnyLikelihood } & (Model | TableModel)} AnyModel */
/** @typedef {any} AnyLikelihood what the model's `decode` returned */

/**
 * @param {Description} description
 * @param {Map<string, NamedArray>} arrays
 * @returns {AnyModel}
 */
export function makeModel(description, arrays) {
  const { table } = description;
  return table ? new TableModel(description, table, arrays) : new Model(description, arrays);
}

/**
 * log p(x|z) in nats of the observed part of x, for each of several p(x|z).
 * @param {AnyModel} model
 * @param {AnyLikelihood} p of n z
 * @param {Float32Array} x (D,)
 * @param {Uint8Array | null} missing (D,): 1 where x is not known
 * @param {number} noise known level of the noise in x
 * @returns {Float64Array} (n,)
 */
export function logLikelihood(model, p, x, missing = null, noise = 0) {
  return Float64Array.from({ length: p.length }, (_, s) => {
    let sum = 0;
    for (let i = 0; i < x.length; i++) {
      if (!missing || !missing[i]) sum += model.logProb(p, s, i, x[i], noise);
    }
    return sum;
  });
}
