// Multi-layer perceptrons: arrays in, arrays out (appendix C of the paper).

import { limited } from "./special.js";

/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {{ weight: Float32Array, bias: Float32Array, inSize: number, outSize: number }} Layer */
/** @typedef {{ mu: Float32Array, sigma: Float32Array }} Gaussian independent variables */
/** @typedef {{ layers: Layer[], activation: string, inSize: number, outSize: number }} Network */

const SQRT_2_OVER_PI = Math.sqrt(2 / Math.PI);

/** @type {Record<string, (a: number) => number>} By their names in model files. */
export const ACTIVATIONS = {
  tanh: Math.tanh,
  relu: (a) => (a > 0 ? a : 0),
  gelu: (a) => 0.5 * a * (1 + Math.tanh(SQRT_2_OVER_PI * (a + 0.044715 * a * a * a))), // JAX's tanh approximation
  silu: (a) => a * sigmoid(a),
  softplus,
  elu: (a) => (a > 0 ? a : Math.expm1(a)),
  sigmoid,
  identity: (a) => a,
};

/** @param {number} a */
export function sigmoid(a) {
  if (a >= 0) return 1 / (1 + Math.exp(-a));
  const e = Math.exp(a);
  return e / (1 + e);
}

/** @param {number} a */
export function softplus(a) {
  return Math.max(a, 0) + Math.log1p(Math.exp(-Math.abs(a)));
}

/**
 * Find the layers of one network by their names in the model file, such as
 * `['parameters'][0].decoder.network.layers[1].weight`.
 * @param {Map<string, NamedArray>} arrays
 * @param {"encoder" | "decoder" | "encoder.label"} part the last is the classifier q(y|x)
 * @param {string} activation
 * @returns {Network | null}
 */
export function findNetwork(arrays, part, activation) {
  if (!(activation in ACTIVATIONS)) throw new Error(`an unknown activation: ${activation}`);
  // Of a model with labels, the encoder of z is next to the classifier.
  const path = part === "encoder" ? "encoder(?:\\.latent)?" : part.replace(".", "\\.");
  const pattern = new RegExp(`\\.${path}(?:\\.conditional)?\\.network\\.layers\\[(\\d+)\\]\\.(weight|bias)$`);
  /** @type {Partial<Record<string, NamedArray>>[]} */
  const found = [];
  for (const [name, array] of arrays) {
    const match = pattern.exec(name);
    if (match) (found[Number(match[1])] ??= {})[match[2]] = array;
  }
  const layers = found.map(({ weight, bias }) => {
    if (!weight || !bias) throw new Error(`a layer of the ${part} is incomplete`);
    const [outSize, inSize] = weight.shape;
    return { weight: weight.values, bias: bias.values, inSize, outSize };
  });
  if (!layers.length) return null;
  return { layers, activation, inSize: layers[0].inSize, outSize: layers[layers.length - 1].outSize };
}

/**
 * y = MLP(x) for several x at once.
 * @param {Network} network
 * @param {Float32Array} x (n, inSize)
 * @returns {Float32Array} (n, outSize)
 */
export function apply(network, x) {
  const n = x.length / network.inSize;
  const f = ACTIVATIONS[network.activation];
  let h = x;
  network.layers.forEach((layer, place) => {
    const isLast = place === network.layers.length - 1;
    h = n === 1 ? linearOfOne(layer, h) : linear(layer, h, n);
    if (!isLast && network.activation !== "identity") for (let i = 0; i < h.length; i++) h[i] = f(h[i]);
  });
  return h;
}

/**
 * A network at fixed values of its last inputs, which become part of the first layer's bias.
 * @param {Network} network
 * @param {Float32Array} values
 * @returns {Network}
 */
export function conditioned(network, values) {
  const [first, ...rest] = network.layers;
  const { inSize: all, outSize } = first;
  const inSize = all - values.length;
  const weight = new Float32Array(outSize * inSize);
  const bias = first.bias.map((start, o) => {
    weight.set(first.weight.subarray(o * all, o * all + inSize), o * inSize);
    return values.reduce((sum, value, k) => sum + first.weight[o * all + inSize + k] * value, start);
  });
  return { ...network, layers: [{ weight, bias, inSize, outSize }, ...rest], inSize };
}

/**
 * Outputs (n, 2 K) as means and standard deviations, (n, K) each: the first half, and the log variances.
 * @param {Float32Array} outputs
 * @param {number} K
 * @returns {Gaussian}
 */
export function gaussianOf(outputs, K) {
  const n = outputs.length / (2 * K);
  const mu = new Float32Array(n * K);
  const sigma = new Float32Array(n * K);
  for (let s = 0; s < n; s++) {
    mu.set(outputs.subarray(2 * s * K, (2 * s + 1) * K), s * K);
    for (let k = 0; k < K; k++) sigma[s * K + k] = Math.exp(limited(outputs[(2 * s + 1) * K + k]) / 2);
  }
  return { mu, sigma };
}

/**
 * W x + b for one x; four rows of W at a time, because a single running sum would make the processor wait.
 * @param {Layer} layer
 * @param {Float32Array} x
 */
function linearOfOne({ weight, bias, inSize, outSize }, x) {
  const y = new Float32Array(outSize);
  let o = 0;
  for (; o + 4 <= outSize; o += 4) {
    const row = o * inSize;
    let a = 0,
      b = 0,
      c = 0,
      d = 0;
    for (let i = 0; i < inSize; i++) {
      const value = x[i];
      a += weight[row + i] * value;
      b += weight[row + inSize + i] * value;
      c += weight[row + 2 * inSize + i] * value;
      d += weight[row + 3 * inSize + i] * value;
    }
    y[o] = a + bias[o];
    y[o + 1] = b + bias[o + 1];
    y[o + 2] = c + bias[o + 2];
    y[o + 3] = d + bias[o + 3];
  }
  for (; o < outSize; o++) {
    let sum = bias[o];
    for (let i = 0; i < inSize; i++) sum += weight[o * inSize + i] * x[i];
    y[o] = sum;
  }
  return y;
}

/**
 * W x + b for several x: each row of W is read once for four x.
 * @param {Layer} layer
 * @param {Float32Array} x (n, inSize)
 * @param {number} n
 */
export function linear({ weight, bias, inSize, outSize }, x, n) {
  const y = new Float32Array(n * outSize);
  let s = 0;
  for (; s + 4 <= n; s += 4) {
    const p = s * inSize,
      q = p + inSize,
      r = q + inSize,
      t = r + inSize;
    for (let o = 0; o < outSize; o++) {
      const row = o * inSize;
      let a = bias[o],
        b = a,
        c = a,
        d = a;
      for (let i = 0; i < inSize; i++) {
        const w = weight[row + i];
        a += w * x[p + i];
        b += w * x[q + i];
        c += w * x[r + i];
        d += w * x[t + i];
      }
      const to = s * outSize + o;
      y[to] = a;
      y[to + outSize] = b;
      y[to + 2 * outSize] = c;
      y[to + 3 * outSize] = d;
    }
  }
  for (; s < n; s++) {
    y.set(linearOfOne({ weight, bias, inSize, outSize }, x.subarray(s * inSize, (s + 1) * inSize)), s * outSize);
  }
  return y;
}
