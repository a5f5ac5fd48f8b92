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
