// Reproducible random numbers from a seed: a shared page shows the same draws.

export class Random {
  /** @param {number} seed */
  constructor(seed) {
    this.state = seed >>> 0;
    /** @type {number | null} */
    this.spare = null;
  }

  /** A number in [0, 1). Mulberry32, by Tommy Ettinger: small, and good enough for display. */
  uniform() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  /** N(0, 1), by Box and Muller. */
  normal() {
    if (this.spare !== null) {
      const value = this.spare;
      this.spare = null;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    const angle = 2 * Math.PI * this.uniform();
    this.spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  }

  /** @param {number} length */
  normals(length) {
    return Float32Array.from({ length }, () => this.normal());
  }

  /**
   * A gamma variable of unit scale (Marsaglia and Tsang, 2000).
   * @param {number} shape
   * @returns {number}
   */
  gamma(shape) {
    if (shape < 1) return this.gamma(shape + 1) * (1 - this.uniform()) ** (1 / shape);
    const d = shape - 1 / 3;
    for (;;) {
      const x = this.normal();
      const v = (1 + x / Math.sqrt(9 * d)) ** 3;
      if (v > 0 && Math.log(1 - this.uniform()) < x ** 2 / 2 + d - d * v + d * Math.log(v)) return d * v;
    }
  }

  /**
   * A Poisson variable. A large rate is halved again and again: of a count that is at least m, the m-th arrival is a
   * gamma variable, and the arrivals before or after it are a smaller problem (Ahrens and Dieter, 1974).
   * @param {number} rate
   */
  poisson(rate) {
    let count = 0;
    while (rate > 30) {
      const m = Math.floor((7 / 8) * rate);
      const arrival = this.gamma(m);
      if (arrival > rate) return count + this.binomial(m - 1, rate / arrival);
      count += m;
      rate -= arrival;
    }
    const limit = Math.exp(-rate);
    for (let product = 1 - this.uniform(); product > limit; product *= 1 - this.uniform()) count += 1;
    return count;
  }

  /**
   * A binomial variable, by its median order statistic, a beta variable, while there are many trials.
   * @param {number} n
   * @param {number} share
   */
  binomial(n, share) {
    let count = 0;
    while (n > 30) {
      const i = 1 + Math.floor(n / 2);
      const [a, b] = [this.gamma(i), this.gamma(n + 1 - i)];
      const middle = a / (a + b);
      if (middle <= share) {
        count += i;
        n -= i;
        share = (share - middle) / (1 - middle);
      } else {
        n = i - 1;
        share /= middle;
      }
    }
    for (let k = 0; k < n; k++) if (this.uniform() < share) count += 1;
    return count;
  }

  /**
   * A random index, with probabilities proportional to the weights.
   * @param {ArrayLike<number>} weights
   */
  choose(weights) {
    let rest = this.uniform() * Array.from(weights).reduce((sum, weight) => sum + weight, 0);
    for (let i = 0; i < weights.length; i++) {
      rest -= weights[i];
      if (rest < 0) return i;
    }
    return weights.length - 1;
  }
}

/** A new seed, short enough for a URL. */
export function newSeed() {
  return Math.floor(Math.random() * 1e6);
}
