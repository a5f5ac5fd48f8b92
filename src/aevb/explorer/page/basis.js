// The plane that is shown: two coordinates of z vary, the others stay fixed.
//
// Coordinates are c = B (z - m) with orthonormal rows B: the latent variables themselves (m = 0, the most informative
// first), or the principal axes of the codes.

/** @typedef {{ kind: "axes" | "pca", first: number, second: number }} Choice indices of coordinates */

export class Basis {
  /**
   * @param {"axes" | "pca"} kind
   * @param {Float32Array} rows (J, J)
   * @param {Float32Array} center (J,)
   * @param {string[]} names of the coordinates, with the information that they carry
   */
  constructor(kind, rows, center, names) {
    this.kind = kind;
    this.rows = rows;
    this.center = center;
    this.names = names;
    this.size = center.length;
  }

  /**
   * @param {ArrayLike<number>} z (J,)
   * @returns {Float32Array} (J,)
   */
  coordinates(z) {
    const { rows, center, size: J } = this;
    return Float32Array.from({ length: J }, (_, k) => {
      let sum = 0;
      for (let j = 0; j < J; j++) sum += rows[k * J + j] * (z[j] - center[j]);
      return sum;
    });
  }

  /**
   * @param {ArrayLike<number>} c (J,)
   * @returns {Float32Array} (J,)
   */
  latent(c) {
    const { rows, center, size: J } = this;
    return Float32Array.from({ length: J }, (_, j) => {
      let sum = center[j];
      for (let k = 0; k < J; k++) sum += rows[k * J + j] * c[k];
      return sum;
    });
  }

  /**
   * The covariance, in two coordinates, of independent variables: its Cholesky factor (l11, l21, l22).
   * @param {Float32Array} sigma (J,)
   * @param {number} a
   * @param {number} b
   */
  factor(sigma, a, b) {
    const { rows, size: J } = this;
    let aa = 0,
      ab = 0,
      bb = 0;
    for (let j = 0; j < J; j++) {
      const left = rows[a * J + j] * sigma[j];
      const right = rows[b * J + j] * sigma[j];
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
 * @param {number[]} carried
 * @param {string} unit
 * @param {boolean[]} active
 */
export function latentAxes(carried, unit, active) {
  const J = carried.length;
  const order = carried.map((_, j) => j);
  if (J > 2) order.sort((i, j) => carried[j] - carried[i]);
  const rows = new Float32Array(J * J);
  order.forEach((j, k) => (rows[k * J + j] = 1));
  const names = order.map((j) => {
    const nats = unit === "nats" ? ` · ${carried[j].toFixed(2)} nats` : "";
    return `z${subscript(j + 1)}${nats}${active[j] ? "" : " · inactive"}`;
  });
  return new Basis("axes", rows, new Float32Array(J), names);
}

/**
 * @param {Float32Array} directions (J, J)
 * @param {Float32Array} center (J,)
 * @param {number[]} variances
 */
export function principalAxes(directions, center, variances) {
  const total = variances.reduce((sum, value) => sum + value, 0);
  const names = variances.map((value, k) => `PC${subscript(k + 1)} · ${((100 * value) / total).toFixed(0)} %`);
  return new Basis("pca", directions, center, names);
}

/** @param {number} number */
export function subscript(number) {
  return String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]);
}
