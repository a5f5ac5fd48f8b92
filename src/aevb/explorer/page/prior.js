// The prior p(z): N(0, I), or a mixture of Gaussians that was learned.

/** @typedef {import("./random.js").Random} Random */
/**
 * @typedef {object} Mixture
 * @property {number[]} log_weights (K,), which sum to one after exp
 * @property {number[][]} loc (K, J)
 * @property {number[][][]} whitening (K, J, J): whitening (z - loc) is N(0, I)
 * @property {number[][][]} scale (K, J, J): the inverse
 */

const LOG_2_PI = Math.log(2 * Math.PI);

export class Prior {
  /**
   * @param {number} latentDim
   * @param {Mixture | null} mixture null for N(0, I)
   */
  constructor(latentDim, mixture) {
    this.J = latentDim;
    this.isStandard = !mixture;
    const identity = [...Array(latentDim).keys()].map((i) => [...Array(latentDim).keys()].map((j) => Number(i === j)));
    /** @type {Mixture} */
    this.mixture = mixture ?? {
      log_weights: [0],
      loc: [Array(latentDim).fill(0)],
      whitening: [identity],
      scale: [identity],
    };
    const { log_weights: logWeights, loc } = this.mixture;
    this.mean = loc[0].map((_, j) => loc.reduce((sum, mu, k) => sum + Math.exp(logWeights[k]) * mu[j], 0));
  }

  /** @param {ArrayLike<number>} z (J,) */
  logDensity(z) {
    const { log_weights: logWeights, loc, whitening } = this.mixture;
    const terms = logWeights.map((logWeight, k) => {
      let sum = logWeight - (this.J * LOG_2_PI) / 2;
      for (let i = 0; i < this.J; i++) {
        let epsilon = 0;
        for (let j = 0; j <= i; j++) epsilon += whitening[k][i][j] * (z[j] - loc[k][j]);
        sum += Math.log(whitening[k][i][i]) - epsilon ** 2 / 2;
      }
      return sum;
    });
    const largest = Math.max(...terms);
    return largest + Math.log(terms.reduce((sum, term) => sum + Math.exp(term - largest), 0));
  }

  /**
   * Several draws, each moved towards the mean by the temperature.
   * @param {Random} random
   * @param {number} n
   * @param {number} temperature
   * @returns {Float32Array} (n, J)
   */
  draws(random, n, temperature = 1) {
    if (this.isStandard) return random.normals(n * this.J).map((value) => temperature * value);
    const { log_weights: logWeights, loc, scale } = this.mixture;
    const z = new Float32Array(n * this.J);
    for (let s = 0; s < n; s++) {
      const k = random.choose(logWeights.map(Math.exp));
      const epsilon = random.normals(this.J);
      for (let i = 0; i < this.J; i++) {
        const value = scale[k][i].reduce((sum, entry, j) => sum + entry * epsilon[j], loc[k][i]);
        z[s * this.J + i] = this.mean[i] + temperature * (value - this.mean[i]);
      }
    }
    return z;
  }
}
