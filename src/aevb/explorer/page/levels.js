// p(z) and q(z|x) over one or several levels of latent variables.
//
// All levels are one vector z = (z_1, ..., z_L), that next to the data first. p draws them from the top down,
// p(z_L) p(z_{L-1}|z_L) ... p(z_1|z_2), and x depends on z_1 only. q draws them from the bottom up, or, as a ladder, from
// the top down with p's networks. A model without a hierarchy has one level.

import { subscript } from "./dom.js";
import { apply, findNetwork, gaussianOf, sigmoid, softplus } from "./network.js";
import { Prior } from "./prior.js";

/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {import("./network.js").Gaussian} Gaussian */
/** @typedef {import("./network.js").Network} Network */
/** @typedef {{ places: number[], loc: number[], scale: number[] }} CodesRead */
/** @typedef {{ z: Float32Array } & Gaussian} Draws z ~ N(mu, sigma^2), each level given the one drawn before: (n, J) */

const LOG_2_PI = Math.log(2 * Math.PI);

export class Levels {
  /**
   * @param {Pick<import("./model.js").Description, "levels" | "is_ladder" | "prior" | "codes" | "activation">} description
   * @param {Map<string, NamedArray>} arrays
   */
  constructor({ levels: sizes, is_ladder: isLadder, prior, codes, activation }, arrays) {
    this.sizes = sizes;
    this.J = sizes.reduce((sum, size) => sum + size, 0);
    this.starts = sizes.map((_, level) => sizes.slice(0, level).reduce((sum, size) => sum + size, 0));
    this.last = sizes.length - 1;
    this.isLadder = isLadder;
    /** Of M1+M2: the variables of the first level that the second knows of. */
    this.codes = codes;
    this.top = new Prior(sizes[this.last], prior);
    const upTo = sizes.slice(1);
    /** The networks of p(z_l|z_{l+1}), and of q from the second level on. */
    this.lower = upTo.map((_, k) => findNetwork(arrays, `prior.lower[${k}]`, activation));
    this.upper = upTo.map((_, k) => findNetwork(arrays, `encoder.upper[${k}]`, activation));
  }

  /** Whether p(z) is N(0, I). */
  get isStandard() {
    return this.last === 0 && this.top.isStandard;
  }

  /**
   * The places of a level's variables in z.
   * @param {number} level
   */
  places(level) {
    return Array.from({ length: this.sizes[level] }, (_, k) => this.starts[level] + k);
  }

  /**
   * The name of a variable: z₃, or z₂,₃ for the third of the second level.
   * @param {number} j
   */
  nameOf(j) {
    const level = this.starts.filter((start) => start <= j).length - 1;
    const own = subscript(j - this.starts[level] + 1);
    return this.last === 0 ? `z${own}` : `${this.title(level)},${own}`;
  }

  /**
   * The name of a level.
   * @param {number} level
   */
  title(level) {
    return this.last === 0 ? "z" : `z${subscript(level + 1)}`;
  }

  /**
   * One level of several z.
   * @param {Float32Array} z (n, J)
   * @param {number} level
   * @returns {Float32Array} (n, size of the level)
   */
  part(z, level) {
    if (this.last === 0) return z;
    const [start, size] = [this.starts[level], this.sizes[level]];
    const found = new Float32Array((z.length / this.J) * size);
    for (let s = 0; s * this.J < z.length; s++) {
      found.set(z.subarray(s * this.J + start, s * this.J + start + size), s * size);
    }
    return found;
  }

  /**
   * Replace one level of several z, in place.
   * @param {Float32Array} z (n, J)
   * @param {number} level
   * @param {Float32Array} values (n, size of the level)
   */
  put(z, level, values) {
    const [start, size] = [this.starts[level], this.sizes[level]];
    for (let s = 0; s * this.J < z.length; s++) z.set(values.subarray(s * size, (s + 1) * size), s * this.J + start);
  }

  /**
   * p of one level given the one above it; null for a top level that is not N(0, I).
   * @param {number} level
   * @param {Float32Array} z (n, J)
   * @returns {Gaussian | null} (n, size of the level)
   */
  priorAt(level, z) {
    const size = (z.length / this.J) * this.sizes[level];
    if (level < this.last) {
      const outputs = apply(network(this.lower[level]), this.part(z, level + 1));
      return this.codes ? spread(outputs, this.codes, size, this.sizes[level]) : gaussianOf(outputs, this.sizes[level]);
    }
    return this.top.isStandard ? { mu: new Float32Array(size), sigma: new Float32Array(size).fill(1) } : null;
  }

  /**
   * Draw the levels below one that is held, from p.
   * @param {Float32Array} z (n, J)
   * @param {number} held
   * @param {Float32Array} epsilon (n, J), or (J,) for the same noise everywhere; zero for the means
   * @returns {Float32Array} (n, J)
   */
  descend(z, held, epsilon) {
    const found = z.slice();
    for (let level = held - 1; level >= 0; level--) {
      const p = /** @type {Gaussian} */ (this.priorAt(level, found));
      this.put(found, level, this.shifted(p, level, epsilon));
    }
    return found;
  }

  /**
   * mu + sigma * epsilon at one level.
   * @param {Gaussian} gaussian (n, size of the level)
   * @param {number} level
   * @param {Float32Array} epsilon (n, J), or (J,)
   */
  shifted({ mu, sigma }, level, epsilon) {
    const [start, size] = [this.starts[level], this.sizes[level]];
    return mu.map((mean, i) => {
      const place = Math.floor(i / size) * this.J + start + (i % size);
      return mean + sigma[i] * epsilon[place % epsilon.length];
    });
  }

  /**
   * Draws from p(z), with deviations from the mean of each level multiplied by the temperature.
   * @param {import("./random.js").Random} random
   * @param {number} n
   * @param {number} temperature
   * @returns {Float32Array} (n, J)
   */
  draws(random, n, temperature = 1) {
    const z = new Float32Array(n * this.J);
    this.put(z, this.last, this.top.draws(random, n, temperature));
    if (this.last === 0) return z;
    return this.descend(z, this.last, random.normals(n * this.J).map((value) => temperature * value));
  }

  /**
   * log p(z) of one z.
   * @param {Float32Array} z (J,)
   */
  logDensity(z) {
    let sum = this.logTop(this.part(z, this.last));
    for (let level = 0; level < this.last; level++) {
      sum += logNormal(this.part(z, level), /** @type {Gaussian} */ (this.priorAt(level, z)));
    }
    return sum;
  }

  /**
   * log p of several z_L, summed.
   * @param {Float32Array} z (n, size of the last level)
   */
  logTop(z) {
    const size = this.sizes[this.last];
    let sum = 0;
    for (let start = 0; start < z.length; start += size) sum += this.top.logDensity(z.subarray(start, start + size));
    return sum;
  }

  /**
   * q(z|x), and draws from it.
   * @param {Gaussian} first what the encoder says of the level next to the data, (n, size of that level)
   * @param {Float32Array} [epsilon] (n, J); without it each level is at its mean
   * @returns {Draws} (n, J) each
   */
  posterior(first, epsilon) {
    const n = first.mu.length / this.sizes[0];
    const zeros = epsilon ?? new Float32Array(this.J);
    const found = { z: new Float32Array(n * this.J), mu: new Float32Array(n * this.J), sigma: new Float32Array(n * this.J) };
    const add = (/** @type {number} */ level, /** @type {Gaussian} */ q) => {
      this.put(found.mu, level, q.mu);
      this.put(found.sigma, level, q.sigma);
      this.put(found.z, level, this.shifted(q, level, zeros));
    };
    if (this.isLadder) this.climbAndDescend(first, found, add);
    else {
      add(0, first);
      for (let level = 1; level <= this.last; level++) add(level, this.above(level, this.read(this.part(found.z, level - 1))));
    }
    return found;
  }

  /**
   * A ladder: networks read each other's outputs from the data up; draws go down, each level combined with p.
   * @param {Gaussian} first
   * @param {Draws} found
   * @param {(level: number, q: Gaussian) => void} add
   */
  climbAndDescend(first, found, add) {
    const seen = [first];
    for (let level = 1; level <= this.last; level++) seen.push(this.above(level, sideBySide(seen[level - 1], this.sizes[level - 1])));
    add(this.last, seen[this.last]);
    for (let level = this.last - 1; level >= 0; level--) {
      add(level, combined(seen[level], /** @type {Gaussian} */ (this.priorAt(level, found.z))));
    }
  }

  /**
   * What the second level reads of the first: all of it, or the codes that it knows of, in their units.
   * @param {Float32Array} z (n, size of the first level)
   */
  read(z) {
    if (!this.codes) return z;
    const { places, loc, scale } = this.codes;
    const n = z.length / this.sizes[0];
    return Float32Array.from({ length: n * places.length }, (_, i) => {
      const k = i % places.length;
      return (z[Math.floor(i / places.length) * this.sizes[0] + places[k]] - loc[k]) / scale[k];
    });
  }

  /**
   * What the encoder says of a level from the second on.
   * @param {number} level
   * @param {Float32Array} input
   */
  above(level, input) {
    return gaussianOf(apply(network(this.upper[level - 1]), input), this.sizes[level]);
  }

  /**
   * KL(q(z|x) || p(z)) of each level, averaged over the draws: in closed form where p's parent is drawn before in q.
   * @param {Draws} draws (n, J)
   * @returns {number[]} in nats
   */
  divergences({ z, mu, sigma }) {
    const n = z.length / this.J;
    return this.sizes.map((_, level) => {
      const q = { mu: this.part(mu, level), sigma: this.part(sigma, level) };
      const p = this.priorAt(level, z);
      if (p && (this.isLadder || level === this.last)) return klDivergence(q, p) / n;
      const values = this.part(z, level);
      return (logNormal(values, q) - (p ? logNormal(values, p) : this.logTop(values))) / n;
    });
  }
}

/**
 * Outputs of M2 as the distribution of all codes: N(0, 1) for those that it does not know of.
 * @param {Float32Array} outputs
 * @param {CodesRead} codes
 * @param {number} length of the result
 * @param {number} size of the level
 * @returns {Gaussian}
 */
function spread(outputs, { places, loc, scale }, length, size) {
  const known = gaussianOf(outputs, places.length);
  const found = { mu: new Float32Array(length), sigma: new Float32Array(length).fill(1) };
  known.mu.forEach((mean, i) => {
    const k = i % places.length;
    const to = Math.floor(i / places.length) * size + places[k];
    found.mu[to] = loc[k] + scale[k] * mean;
    found.sigma[to] = scale[k] * known.sigma[i];
  });
  return found;
}

/** @param {Network | null} found */
function network(found) {
  if (!found) throw new Error("the page does not contain the networks between two levels");
  return found;
}

/**
 * KL(q || p) of independent Gaussian variables, appendix B, summed over all.
 * @param {Gaussian} q
 * @param {Gaussian} p
 */
function klDivergence(q, p) {
  let sum = 0;
  for (let j = 0; j < q.mu.length; j++) {
    const v = 2 * (Math.log(q.sigma[j]) - Math.log(p.sigma[j]));
    sum += (((q.mu[j] - p.mu[j]) / p.sigma[j]) ** 2 + Math.expm1(v) - v) / 2;
  }
  return sum;
}

/**
 * @param {Float32Array} z
 * @param {Gaussian} gaussian of the same shape
 */
export function logNormal(z, { mu, sigma }) {
  let sum = 0;
  for (let j = 0; j < z.length; j++) {
    sum -= ((z[j] - mu[j]) / sigma[j]) ** 2 / 2 + Math.log(sigma[j]) + LOG_2_PI / 2;
  }
  return sum;
}

/**
 * Means and log standard deviations, (n, 2 K).
 * @param {Gaussian} gaussian (n, K)
 * @param {number} K
 */
function sideBySide({ mu, sigma }, K) {
  const found = new Float32Array(2 * mu.length);
  for (let i = 0; i < mu.length; i++) {
    const place = 2 * K * Math.floor(i / K) + (i % K);
    found[place] = mu[i];
    found[place + K] = Math.log(sigma[i]);
  }
  return found;
}

/**
 * The product of two Gaussian densities, as a distribution.
 * @param {Gaussian} seen
 * @param {Gaussian} p
 * @returns {Gaussian}
 */
function combined(seen, p) {
  const excess = p.sigma.map((sigma, i) => 2 * (Math.log(sigma) - Math.log(seen.sigma[i]))); // log ratio of precisions
  return {
    mu: p.mu.map((mean, i) => mean + sigmoid(excess[i]) * (seen.mu[i] - mean)),
    sigma: p.sigma.map((sigma, i) => sigma * Math.exp(-softplus(excess[i]) / 2)),
  };
}
