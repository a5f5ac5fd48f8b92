// Special functions, in double precision.

const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
  12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7,
];

/**
 * log Gamma(y) for y > 0, by Lanczos' approximation.
 * @param {number} y
 * @returns {number}
 */
export function logGamma(y) {
  if (y < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * y)) - logGamma(1 - y);
  const t = y + 6.5;
  const sum = LANCZOS.reduce((total, factor, k) => total + (k ? factor / (y - 1 + k) : factor), 0);
  return Math.log(2 * Math.PI) / 2 + (y - 0.5) * Math.log(t) - t + Math.log(sum);
}

/**
 * log Gamma(y + 1) - (y log y - y) for y >= 0; it does not cancel where y is large.
 * @param {number} y
 */
export function stirlingExcess(y) {
  if (y < 8) return y > 0 ? logGamma(y + 1) - y * Math.log(y) + y : 0;
  const inverse = 1 / y;
  return (
    Math.log(2 * Math.PI * y) / 2 + inverse * (1 / 12 - inverse ** 2 * (1 / 360 - inverse ** 2 * (1 / 1260)))
  );
}

/**
 * A logarithm, unchanged up to the limit, and beyond it growing slowly: as the library limits log variances.
 * @param {number} v
 * @param {number} limit
 */
export function limited(v, limit = 10) {
  const excess = Math.abs(v) - limit;
  return excess > 0 ? Math.sign(v) * (limit + Math.log1p(2 * excess) / 2) : v;
}

/**
 * The logarithm of the probability that a standard normal variable is below t.
 * @param {number} t
 * @returns {number}
 */
export function logNormalCdf(t) {
  if (t > 3) return Math.log1p(-Math.exp(logNormalCdf(-t)));
  if (t < -3) {
    // Laplace's continued fraction of Mills' ratio.
    let ratio = -t;
    for (let k = 60; k; k--) ratio = k / ratio - t;
    return -(t * t + Math.log(2 * Math.PI)) / 2 - Math.log(ratio);
  }
  // The series of Phi(t) - 1/2 in odd powers, times the density (Marsaglia, 2004).
  let term = t;
  let sum = t;
  for (let k = 3; Math.abs(term) > 1e-17; k += 2) sum += term *= (t * t) / k;
  return Math.log(0.5 + (sum * Math.exp((-t * t) / 2)) / Math.sqrt(2 * Math.PI));
}

/**
 * The logarithm of the probability that a standard normal variable is between a and b, a < b.
 * @param {number} a
 * @param {number} b
 * @returns {number}
 */
export function logNormalInterval(a, b) {
  if (a > 0) return logNormalInterval(-b, -a);
  if (b - a < 0.002) return -(((a + b) / 2) ** 2 + Math.log(2 * Math.PI)) / 2 + Math.log(b - a);
  const logBelow = logNormalCdf(b);
  return logBelow + Math.log(-Math.expm1(logNormalCdf(a) - logBelow));
}
