// The plane that is shown: two coordinates of z vary, the others stay fixed.
//
// Coordinates are c = B ((z - m) / s) with orthonormal rows B: the latent variables themselves, the most informative
// first, or the principal axes of the codes. Those of the level that is shown come first, and only they have names. m
// and s are 0 and 1 for the paper's prior; the levels of a hierarchy below the top have means and scales of their own.

import { subscript } from "./dom.js";

/** @typedef {import("./levels.js").Levels} Levels */

export class Basis {
  /**
   * @param {"axes" | "pca"} kind
   * @param {Float32Array} rows (J, J)
   * @param {ArrayLike<number>} center (J,)
   * @param {ArrayLike<number>} scale (J,)
   * @param {string[]} names of the coordinates that are shown, with the information that they carry
   */
  constructor(kind, rows, center, scale, names) {
    this.kind = kind;
    this.rows = rows;
    this.center = center;
    this.scale = scale;
    this.names = names;
    this.size = center.length;
  }

  /**
   * @param {ArrayLike<number>} z (J,)
   * @returns {Float32Array} (J,)
   */
  coordinates(z) {
    const { rows, center, scale, size: J } = this;
    return Float32Array.from({ length: J }, (_, k) => {
      let sum = 0;
      for (let j = 0; j < J; j++) sum += (rows[k * J + j] * (z[j] - center[j])) / scale[j];
      return sum;
    });
  }

  /**
   * @param {ArrayLike<number>} c (J,)
   * @returns {Float32Array} (J,)
   */
  latent(c) {
    const { rows, center, scale, size: J } = this;
    return Float32Array.from({ length: J }, (_, j) => {
      let sum = 0;
      for (let k = 0; k < J; k++) sum += rows[k * J + j] * c[k];
      return center[j] + scale[j] * sum;
    });
  }

  /**
   * The covariance, in two coordinates, of independent variables: its Cholesky factor (l11, l21, l22).
   * @param {Float32Array} sigma (J,)
   * @param {number} a
   * @param {number} b
   */
  factor(sigma, a, b) {
    const { rows, scale, size: J } = this;
    let aa = 0,
      ab = 0,
      bb = 0;
    for (let j = 0; j < J; j++) {
      const left = (rows[a * J + j] * sigma[j]) / scale[j];
      const right = (rows[b * J + j] * sigma[j]) / scale[j];
      aa += left * left;
      ab += left * right;
      bb += right * right;
    }
    const l11 = Math.sqrt(aa);
    const l21 = l11 ? ab / l11 : 0;
    return { l11, l21, l22: Math.sqrt(Math.max(bb - l21 * l21, 0)) };
  }
}

/**
 * The latent variables, the most informative first; two of them keep their order, as in the pictures of the report.
 * @param {import("./app.js").DataFacts} data
 * @param {Levels} levels
 * @param {number} level
 */
export function latentAxes({ carried, carried_kind: unit, active, latent_loc: loc, latent_scale: scale }, levels, level) {
  const { J } = levels;
  const own = levels.places(level);
  if (own.length > 2) own.sort((i, j) => carried[j] - carried[i]);
  const rows = new Float32Array(J * J);
  inFront(own, J).forEach((j, k) => (rows[k * J + j] = 1));
  const names = own.map((j) => {
    const nats = unit === "nats" ? ` · ${carried[j].toFixed(2)} nats` : "";
    return `${levels.nameOf(j)}${nats}${active[j] ? "" : " · inactive"}`;
  });
  return new Basis("axes", rows, loc, scale, names);
}

/**
 * @param {import("./app.js").DataFacts} data
 * @param {Float32Array} directions (J, J), those of each level in its own rows and columns
 * @param {Float32Array} center (J,)
 * @param {Levels} levels
 * @param {number} level
 */
export function principalAxes({ pca_variances: variances, latent_scale: scale }, directions, center, levels, level) {
  const { J } = levels;
  const own = levels.places(level);
  const rows = new Float32Array(J * J);
  inFront(own, J).forEach((j, k) => rows.set(directions.subarray(j * J, (j + 1) * J), k * J));
  const total = own.reduce((sum, j) => sum + variances[j], 0);
  const names = own.map((j, k) => `PC${subscript(k + 1)} · ${((100 * variances[j]) / total).toFixed(0)} %`);
  return new Basis("pca", rows, center, scale, names);
}

/**
 * All places, some of them first.
 * @param {number[]} first
 * @param {number} J
 */
function inFront(first, J) {
  const rest = Array.from({ length: J }, (_, j) => j).filter((j) => !first.includes(j));
  return [...first, ...rest];
}
