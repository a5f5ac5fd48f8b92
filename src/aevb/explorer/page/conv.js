// Convolutional networks of images: flat rows in, flat rows out, as `aevb.networks.ConvNet`.

import { ACTIVATIONS, apply, arraysOf, conditioned, conditionedLayer, entry, findNetwork, layerOf, linear } from "./network.js";

/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {import("./network.js").Layer} Layer */
/** @typedef {{ gain: Float32Array, bias: Float32Array }} Norm */
/** @typedef {{ norms: Norm[], convolutions: Layer[] }} Block */
/** @typedef {{ convolution: Layer, norm: Norm, blocks: Block[] }} Level */
/** @typedef {{ values: Float32Array, height: number, width: number }} Images (height, width, channels) */
/**
 * @typedef {object} ConvNet
 * @property {Level[]} levels
 * @property {Layer} last between the smallest images and the other side
 * @property {string} activation
 * @property {number[]} shape (height, width, channels)
 * @property {boolean} isEncoder
 * @property {number} inSize
 * @property {number} outSize
 */

const MOST_GROUPS = 8;
const EPSILON = 1e-5;

/** @typedef {import("./network.js").Network | ConvNet} AnyNetwork */

/**
 * Find a network of either kind.
 * @param {Map<string, NamedArray>} arrays
 * @param {string} part see `arraysOf`
 * @param {{ activation: string, image_shape: number[] | null }} description
 * @returns {AnyNetwork | null}
 */
export function findAny(arrays, part, { activation, image_shape: shape }) {
  return (shape && findConvNet(arrays, part, activation, shape)) || findNetwork(arrays, part, activation);
}

/**
 * @param {AnyNetwork} network
 * @param {Float32Array} x (n, inSize)
 */
export function run(network, x) {
  return "levels" in network ? applyConvNet(network, x) : apply(network, x);
}

/**
 * A network at fixed values of what it reads after the image or after z.
 * @template {AnyNetwork} N
 * @param {N} network
 * @param {Float32Array} values
 * @returns {AnyNetwork}
 */
export function fixed(network, values) {
  if (!("levels" in network)) return conditioned(network, values);
  const last = conditionedLayer(network.last, values);
  return { ...network, last, inSize: network.isEncoder ? network.inSize : last.inSize };
}

/**
 * Find a network of images by the names of its arrays, such as `levels[0].convolution.weight`.
 * @param {Map<string, NamedArray>} arrays
 * @param {string} part see `arraysOf`
 * @param {string} activation
 * @param {number[]} shape (height, width, channels)
 * @returns {ConvNet | null}
 */
function findConvNet(arrays, part, activation, shape) {
  const own = arraysOf(arrays, part);
  if (!own.has("linear.weight")) return null;
  const levels = [];
  for (let k = 0; own.has(`levels[${k}].convolution.weight`); k++) {
    const place = `levels[${k}]`;
    const blocks = [];
    for (let b = 0; own.has(`${place}.blocks[${b}].norms[0].gain`); b++) {
      const at = `${place}.blocks[${b}]`;
      blocks.push({
        norms: [0, 1].map((i) => normOf(own, `${at}.norms[${i}]`)),
        convolutions: [0, 1].map((i) => convolutionOf(own, `${at}.convolutions[${i}]`)),
      });
    }
    levels.push({
      convolution: convolutionOf(own, `${place}.convolution`),
      norm: normOf(own, `${place}.norm`),
      blocks,
    });
  }
  const last = layerOf(own, "linear");
  const isEncoder = part !== "decoder";
  const [height, width, channels] = shape;
  const perPixel = levels[levels.length - 1].convolution.outSize / 4;
  return {
    levels,
    last,
    activation,
    shape,
    isEncoder,
    inSize: isEncoder ? height * width * channels : last.inSize,
    outSize: isEncoder ? last.outSize : height * width * perPixel,
  };
}

/**
 * The outputs of a network of images, for several x.
 * @param {ConvNet} network
 * @param {Float32Array} x (n, inSize)
 * @returns {Float32Array} (n, outSize)
 */
function applyConvNet(network, x) {
  const n = x.length / network.inSize;
  const y = new Float32Array(n * network.outSize);
  for (let s = 0; s < n; s++) {
    const one = x.subarray(s * network.inSize, (s + 1) * network.inSize);
    y.set(network.isEncoder ? encoded(network, one) : decoded(network, one), s * network.outSize);
  }
  return y;
}

/**
 * @param {ConvNet} network
 * @param {Float32Array} x
 */
function encoded({ levels, last, activation, shape: [height, width] }, x) {
  const f = ACTIVATIONS[activation];
  /** @type {Images} */
  let h = { values: x, height, width };
  for (const { convolution, norm, blocks } of levels) {
    h = convolved(convolution, folded(h));
    for (const block of blocks) h = residual(block, h, f);
    h = normalized(norm, h, f);
  }
  return linear(last, h.values, 1);
}

/**
 * @param {ConvNet} network
 * @param {Float32Array} z
 */
function decoded({ levels, last, activation, shape: [height, width, channels] }, z) {
  const f = ACTIVATIONS[activation];
  const sizes = [[height, width]];
  for (let k = 0; k < levels.length; k++) sizes.push(sizes[k].map((side) => Math.ceil(side / 2)));
  const [rows, columns] = sizes[levels.length];
  /** @type {Images} */
  let h = { values: linear(last, z, 1), height: rows, width: columns };
  levels.forEach(({ convolution, norm, blocks }, k) => {
    for (const block of blocks) h = residual(block, h, f);
    const [to, across] = sizes[levels.length - 1 - k];
    h = unfolded(convolved(convolution, normalized(norm, h, f)), to, across);
  });
  // One image after the other: (height, width, images, channels) -> (images, height, width, channels).
  const numPixels = height * width;
  const num = h.values.length / (numPixels * channels);
  const y = new Float32Array(h.values.length);
  for (let i = 0; i < numPixels; i++) {
    for (let k = 0; k < num; k++) {
      for (let c = 0; c < channels; c++) y[(k * numPixels + i) * channels + c] = h.values[(i * num + k) * channels + c];
    }
  }
  return y;
}

/**
 * x + C2 f(N2 C1 f(N1 x)).
 * @param {Block} block
 * @param {Images} x
 * @param {(a: number) => number} f
 * @returns {Images}
 */
function residual({ norms, convolutions }, x, f) {
  let y = x;
  for (let i = 0; i < 2; i++) y = convolved(convolutions[i], normalized(norms[i], y, f));
  return { ...y, values: y.values.map((value, i) => value + x.values[i]) };
}

/**
 * A convolution of 3 x 3 pixels, with zeros around the image: the product of a matrix with each pixel's neighbours.
 * @param {Layer} layer
 * @param {Images} x
 * @returns {Images}
 */
function convolved(layer, { values, height, width }) {
  const channels = layer.inSize / 9;
  const patches = new Float32Array(height * width * layer.inSize);
  for (let row = 0; row < height; row++) {
    for (let i = Math.max(0, 1 - row); i < 3 && row + i - 1 < height; i++) {
      for (let column = 0; column < width; column++) {
        const from = Math.max(column - 1, 0);
        const until = Math.min(column + 2, width);
        const start = (row + i - 1) * width;
        const to = (row * width + column) * layer.inSize + (3 * i + from - column + 1) * channels;
        patches.set(values.subarray((start + from) * channels, (start + until) * channels), to);
      }
    }
  }
  return { values: linear(layer, patches, height * width), height, width };
}

/**
 * f of the image, each group of channels with mean 0 and variance 1 before its gain and bias.
 * @param {Norm} norm
 * @param {Images} x
 * @param {(a: number) => number} f
 * @returns {Images}
 */
function normalized({ gain, bias }, { values, height, width }, f) {
  const channels = gain.length;
  const numGroups = divisor(channels);
  const size = channels / numGroups;
  const y = new Float32Array(values.length);
  for (let group = 0; group < numGroups; group++) {
    let [sum, squares] = [0, 0];
    for (let i = group * size; i < values.length; i += channels) {
      for (let c = i; c < i + size; c++) {
        sum += values[c];
        squares += values[c] * values[c];
      }
    }
    const count = height * width * size;
    const mean = sum / count;
    const factor = 1 / Math.sqrt(Math.max(squares / count - mean * mean, 0) + EPSILON);
    for (let k = group * size; k < (group + 1) * size; k++) {
      const a = (1 + gain[k]) * factor;
      const b = bias[k] - mean * a;
      for (let i = k; i < values.length; i += channels) y[i] = f(values[i] * a + b);
    }
  }
  return { values: y, height, width };
}

/**
 * The largest common divisor of a number of channels and eight groups.
 * @param {number} channels
 */
function divisor(channels) {
  let groups = MOST_GROUPS;
  while (channels % groups) groups /= 2;
  return groups;
}

/**
 * Squares of 2 x 2 pixels as one pixel with four times the channels; an odd side gets zeros.
 * @param {Images} x
 * @returns {Images}
 */
function folded({ values, height, width }) {
  const channels = values.length / (height * width);
  const [rows, columns] = [Math.ceil(height / 2), Math.ceil(width / 2)];
  const y = new Float32Array(4 * rows * columns * channels);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const pixel = (row >> 1) * columns + (column >> 1);
      const to = (4 * pixel + 2 * (row & 1) + (column & 1)) * channels;
      const from = (row * width + column) * channels;
      for (let c = 0; c < channels; c++) y[to + c] = values[from + c];
    }
  }
  return { values: y, height: rows, width: columns };
}

/**
 * The inverse, without what was added to odd sides.
 * @param {Images} x
 * @param {number} height
 * @param {number} width
 * @returns {Images}
 */
function unfolded({ values, height: rows, width: columns }, height, width) {
  const channels = values.length / (4 * rows * columns);
  const y = new Float32Array(height * width * channels);
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) {
      const pixel = (row >> 1) * columns + (column >> 1);
      const from = (4 * pixel + 2 * (row & 1) + (column & 1)) * channels;
      const to = (row * width + column) * channels;
      for (let c = 0; c < channels; c++) y[to + c] = values[from + c];
    }
  }
  return { values: y, height, width };
}

/**
 * The weights (out, in, 3, 3) as a matrix (out, 3 * 3 * in).
 * @param {Map<string, NamedArray>} arrays
 * @param {string} name
 * @returns {Layer}
 */
function convolutionOf(arrays, name) {
  const { shape, values } = entry(arrays, `${name}.weight`);
  const [outSize, channels] = shape;
  const weight = new Float32Array(values.length);
  for (let o = 0; o < outSize; o++) {
    for (let c = 0; c < channels; c++) {
      for (let k = 0; k < 9; k++) weight[(o * 9 + k) * channels + c] = values[(o * channels + c) * 9 + k];
    }
  }
  return { weight, bias: entry(arrays, `${name}.bias`).values, inSize: 9 * channels, outSize };
}

/**
 * @param {Map<string, NamedArray>} arrays
 * @param {string} name
 * @returns {Norm}
 */
function normOf(arrays, name) {
  return { gain: entry(arrays, `${name}.gain`).values, bias: entry(arrays, `${name}.bias`).values };
}
