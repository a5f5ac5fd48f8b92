// Decodes named arrays from text: base64 of zlib of their bytes.

/** @typedef {{ name: string, type: string, shape: number[], start: number }} Entry */
/** @typedef {{ shape: number[], values: Float32Array }} NamedArray */

const BYTES = /** @type {Record<string, number>} */ ({ float16: 2, float32: 4, uint8: 1, uint16: 2, int32: 4 });

/**
 * Read all arrays, as single-precision numbers.
 * @param {Entry[]} table
 * @param {string} text
 * @returns {Promise<Map<string, NamedArray>>}
 */
export async function readArrays(table, text) {
  const buffer = await inflate(bytesOf(text));
  return new Map(table.map((entry) => [entry.name, { shape: entry.shape, values: valuesOf(buffer, entry) }]));
}

/**
 * @param {string} text base64, standard or URL-safe
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function bytesOf(text) {
  const binary = atob(text.trim().replace(/-/g, "+").replace(/_/g, "/"));
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * @param {Uint8Array} bytes
 * @returns {string} URL-safe base64
 */
export function textOf(bytes) {
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/**
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {Promise<ArrayBuffer>}
 */
function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

/**
 * @param {ArrayBuffer} buffer
 * @param {Entry} entry
 * @returns {Float32Array}
 */
function valuesOf(buffer, { type, shape, start }) {
  const length = shape.reduce((product, size) => product * size, 1);
  if (!(type in BYTES)) throw new Error(`an array of unknown type: ${type}`);
  if (type === "float32") return new Float32Array(buffer, start, length);
  if (type === "float16") return halvesOf(new Uint16Array(buffer, start, length));
  if (type === "uint8") return Float32Array.from(new Uint8Array(buffer, start, length));
  if (type === "uint16") return Float32Array.from(new Uint16Array(buffer, start, length));
  return Float32Array.from(new Int32Array(buffer, start, length));
}

/**
 * Half-precision numbers (IEEE 754 binary16): one sign bit, 5 exponent bits, 10 fraction bits.
 * @param {Uint16Array} bits
 * @returns {Float32Array}
 */
export function halvesOf(bits) {
  const values = new Float32Array(bits.length);
  const scales = Float64Array.from({ length: 32 }, (_, exponent) => 2 ** (exponent - 25));
  for (let i = 0; i < bits.length; i++) {
    const exponent = (bits[i] >> 10) & 31;
    const fraction = bits[i] & 1023;
    const size = exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * scales[exponent];
    values[i] = bits[i] & 32768 ? -size : size;
  }
  return values;
}
