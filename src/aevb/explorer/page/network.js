// Multi-layer perceptrons: arrays in, arrays out (appendix C of the paper).

import { limited } from "./special.js";

/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {{ weight: Float32Array, bias: Float32Array, inSize: number, outSize: number }} Layer */
/** @typedef {{ mu: Float32Array, sigma: Float32Array }} Gaussian independent variables */
/**
 * @typedef {{ layers: Layer[], activation: string, inSize: number, outSize: number, shortcut?: Layer }} Network
 * `shortcut` is a linear function of the inputs that is added to the first outputs
 */

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
 * The arrays of one network, by the part of their names in the model file after `.network.`: for instance
 * `['parameters'][0].decoder.network.layers[1].weight`.
 * @param {Map<string, NamedArray>} arrays
 * @param {string} part such as "decoder", "encoder", "encoder.label" for the classifier q(y|x), or "prior.lower[0]"
 * @returns {Map<string, NamedArray>}
 */
export function arraysOf(arrays, part) {
  // The encoder may be the first of several levels, and next to the classifier of a model with labels.
  const path = part === "encoder" ? "encoder(?:\\.first)?(?:\\.latent)?" : part.replace(/[.[\]]/g, "\\$&");
  const pattern = new RegExp(`\\.${path}(?:\\.conditional)*\\.network\\.(.*)$`);
  /** @type {Map<string, NamedArray>} */
  const own = new Map();
  for (const [name, array] of arrays) {
    const match = pattern.exec(name);
    if (match) own.set(match[1], array);
  }
  return own;
}

/**
 * Find the layers of one network.
 * @param {Map<string, NamedArray>} arrays
 * @param {string} part see `arraysOf`
 * @param {string} activation
 * @returns {Network | null}
 */
export function findNetwork(arrays, part, activation) {
  if (!(activation in ACTIVATIONS)) throw new Error(`an unknown activation: ${activation}`);
  const own = arraysOf(arrays, part);
  const layers = [];
  for (let k = 0; own.has(`layers[${k}].weight`); k++) layers.push(layerOf(own, `layers[${k}]`));
  if (!layers.length) return null;
  const [inSize, outSize] = [layers[0].inSize, layers[layers.length - 1].outSize];
  const network = { layers, activation, inSize, outSize };
  const direct = own.get("shortcut");
  if (!direct) return network;
  const [size] = direct.shape;
  return { ...network, shortcut: { weight: direct.values, bias: new Float32Array(size), inSize, outSize: size } };
}

/**
 * @param {Map<string, NamedArray>} own
 * @param {string} name
 * @returns {Layer}
 */
export function layerOf(own, name) {
  const { shape, values } = entry(own, `${name}.weight`);
  const [outSize, inSize] = shape;
  return { weight: values, bias: entry(own, `${name}.bias`).values, inSize, outSize };
}

/**
 * @param {Map<string, NamedArray>} arrays
 * @param {string} name
 * @returns {NamedArray}
 */
export function entry(arrays, name) {
  const found = arrays.get(name);
  if (!found) throw new Error(`the page lacks the array ${name}`);
  return found;
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
  if (network.shortcut) {
    const { outSize } = network.shortcut;
    linear(network.shortcut, x, n).forEach((added, i) => {
      h[Math.floor(i / outSize) * network.outSize + (i % outSize)] += added;
    });
  }
  return h;
}

/**
 * A network at fixed values of its last inputs.
 * @param {Network} network
 * @param {Float32Array} values
 * @returns {Network}
 */
export function conditioned(network, values) {
  const [first, ...rest] = network.layers;
  const fixed = conditionedLayer(first, values);
  return { ...network, layers: [fixed, ...rest], inSize: fixed.inSize };
}

/**
 * A layer at fixed values of its last inputs, which become part of the bias.
 * @param {Layer} layer
 * @param {Float32Array} values
 * @returns {Layer}
 */
export function conditionedLayer({ weight: old, bias: start, inSize: all, outSize }, values) {
  const inSize = all - values.length;
  const weight = new Float32Array(outSize * inSize);
  const bias = start.map((own, o) => {
    weight.set(old.subarray(o * all, o * all + inSize), o * inSize);
    return values.reduce((sum, value, k) => sum + old[o * all + inSize + k] * value, own);
  });
  return { weight, bias, inSize, outSize };
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
 * W x + b for several x: two rows of W and four x at a time, so that each number that is read is used several times.
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
    for (let o = 0; o < outSize; o += 2) {
      const other = Math.min(o + 1, outSize - 1); // the same row, after the last pair
      const row = o * inSize,
        next = other * inSize;
      let a = bias[o],
        b = a,
        c = a,
        d = a;
      let e = bias[other],
        f = e,
        g = e,
        h = e;
      for (let i = 0; i < inSize; i++) {
        const w = weight[row + i],
          v = weight[next + i];
        const xp = x[p + i],
          xq = x[q + i],
          xr = x[r + i],
          xt = x[t + i];
        a += w * xp;
        b += w * xq;
        c += w * xr;
        d += w * xt;
        e += v * xp;
        f += v * xq;
        g += v * xr;
        h += v * xt;
      }
      [a, b, c, d].forEach((value, k) => (y[(s + k) * outSize + o] = value));
      [e, f, g, h].forEach((value, k) => (y[(s + k) * outSize + other] = value));
    }
  }
  for (; s < n; s++) {
    y.set(linearOfOne({ weight, bias, inSize, outSize }, x.subarray(s * inSize, (s + 1) * inSize)), s * outSize);
  }
  return y;
}
