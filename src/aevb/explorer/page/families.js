// Families of columns of tables, under their names in the library: how the numbers of the decoder define p(x_i|z).
//
// To add one, add an entry to COLUMN_FAMILIES. Stored numbers u are those of the model, x those in the user's units.

import { sigmoid, softplus } from "./network.js";
import { limited, logGamma, logNormalCdf, logNormalInterval, stirlingExcess } from "./special.js";

/** @typedef {import("./random.js").Random} Random */
/**
 * @typedef {object} ColumnFacts
 * @property {string} family
 * @property {number} loc
 * @property {number} scale
 * @property {number} low
 * @property {number} high
 * @property {number} num_levels
 * @property {number[]} edges of the cells, in the user's units
 * @property {number[]} scores their normal scores
 * @property {number[]} steps the numbers of the cells, from 1 on, that are single values
 * @property {Record<string, { first: number, shift: number[] }>} outputs where a parameter's numbers are
 * @property {Record<string, number[]>} shared those that are the same for all z
 */
/** @typedef {Record<string, any>} Theta the parameters of one entry */
/** @typedef {(name: string) => number[]} Read the real numbers behind a parameter */
/**
 * @typedef {object} ColumnFamily
 * @property {(read: Read, column: ColumnFacts) => Theta} at
 * @property {(theta: Theta, u: number) => number} logProb of a stored number
 * @property {(theta: Theta) => number} guess the mean, or the most probable level
 * @property {(theta: Theta, random: Random) => number} draw
 * @property {((theta: Theta) => number[]) | null} probabilities of the levels, if it has levels
 * @property {Units} units
 */
/**
 * @typedef {object} Units
 * @property {(u: number, column: ColumnFacts) => number} to the user's units
 * @property {(x: number, column: ColumnFacts) => number} from them, to a number that is allowed
 * @property {(u: number, column: ColumnFacts) => number} logSlope log |dx/du|
 */

const MAX_LOG_RATE = 20;
const EDGE = 1e-6; // of a bounded column: numbers at its ends are moved inside by this share
const LOG_2_PI = Math.log(2 * Math.PI);

/** @type {Record<string, Units>} */
const UNITS = {
  affine: {
    to: (u, { loc, scale }) => loc + scale * u,
    from: (x, { loc, scale }) => (x - loc) / scale,
    logSlope: (_, { scale }) => Math.log(scale),
  },
  exponential: {
    to: (u, { loc, scale }) => Math.exp(loc + scale * u),
    from: (x, { loc, scale }) => (Math.log(Math.max(x, Number.MIN_VALUE)) - loc) / scale,
    logSlope: (u, { loc, scale }) => Math.log(scale) + loc + scale * u,
  },
  between: {
    to(u, { loc, scale, low, high }) {
      const v = loc + scale * u;
      return v < 0 ? low + (high - low) * sigmoid(v) : high - (high - low) * sigmoid(-v);
    },
    from(x, { loc, scale, low, high }) {
      const share = Math.min(Math.max((x - low) / (high - low), EDGE), 1 - EDGE);
      return (Math.log(share) - Math.log1p(-share) - loc) / scale;
    },
    logSlope(u, { loc, scale, low, high }) {
      const v = loc + scale * u;
      return Math.log(scale) + Math.log(high - low) - softplus(v) - softplus(-v);
    },
  },
  cells: {
    to(u, { edges, scale }) {
      const k = Math.min(Math.max(Math.floor(u), 0), edges.length - 1);
      return edges[k] + (u - k) * widthAt(u, edges, scale);
    },
    from(x, { edges, scale }) {
      const above = edges.findIndex((edge) => edge > x);
      const k = above < 0 ? edges.length - 1 : Math.max(above - 1, 0);
      return k + (x - edges[k]) / (above < 1 ? scale : edges[above] - edges[k]);
    },
    logSlope: (u, { edges, scale }) => Math.log(widthAt(u, edges, scale)),
  },
  scores: {
    to: (u, { scores, edges, scale }) => interpolate(u, scores, edges, scale),
    from: (x, { scores, edges, scale }) => interpolate(x, edges, scores, 1 / scale),
    logSlope(u, { scores, edges, scale }) {
      const k = segmentOf(u, scores);
      return Math.log(
        k && k < scores.length ? (edges[k] - edges[k - 1]) / (scores[k] - scores[k - 1]) : scale,
      );
    },
  },
  count: { to: (u) => u, from: (x) => Math.max(Math.round(x), 0), logSlope: () => 0 },
  code: {
    to: (u) => u,
    from: (x, { num_levels }) => Math.min(Math.max(Math.round(x), 0), Math.max(num_levels, 2) - 1),
    logSlope: () => 0,
  },
};

/**
 * The number of knots at or below x.
 * @param {number} x
 * @param {number[]} knots
 */
function segmentOf(x, knots) {
  const above = knots.findIndex((knot) => knot > x);
  return above < 0 ? knots.length : above;
}

/**
 * An increasing function: linear between knots, with the given slope beyond them.
 * @param {number} x
 * @param {number[]} knots
 * @param {number[]} values
 * @param {number} slope
 */
function interpolate(x, knots, values, slope) {
  const k = segmentOf(x, knots);
  if (!k) return values[0] + slope * (x - knots[0]);
  const rise = k < knots.length ? (values[k] - values[k - 1]) / (knots[k] - knots[k - 1]) : slope;
  return values[k - 1] + rise * (x - knots[k - 1]);
}

/**
 * The width of the cell at a position; that of a tail is the scale.
 * @param {number} u
 * @param {number[]} edges
 * @param {number} scale
 */
function widthAt(u, edges, scale) {
  const k = Math.floor(u);
  return k < 0 || k >= edges.length - 1 ? scale : edges[k + 1] - edges[k];
}

/**
 * The logarithms of the probabilities of levels with free logits.
 * @param {Read} read
 * @param {ColumnFacts} column
 */
function logSharesOf(read, { num_levels }) {
  const logits = read("logits").slice(0, num_levels);
  const largest = Math.max(...logits);
  const total = largest + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - largest), 0));
  return logits.map((logit) => logit - total);
}

/** @type {Omit<ColumnFamily, "units">} */
const NORMAL = {
  at: (read) => ({ mu: read("loc")[0], logSd: limited(read("log_variance")[0]) / 2 }),
  logProb: ({ mu, logSd }, u) => -(((u - mu) * Math.exp(-logSd)) ** 2 + LOG_2_PI) / 2 - logSd,
  guess: ({ mu }) => mu,
  draw: ({ mu, logSd }, random) => mu + Math.exp(logSd) * random.normal(),
  probabilities: null,
};

/**
 * The mean of the numbers whose normal scores have mean mu and standard deviation sd.
 * @param {ColumnFacts} column
 * @param {number} mu
 * @param {number} sd
 */
function meanOfNumbers({ scores, edges, scale }, mu, sd) {
  const ends = [-Infinity, ...scores.map((score) => (score - mu) / sd), Infinity];
  const below = ends.map((t) => (t === -Infinity ? 0 : t === Infinity ? 1 : Math.exp(logNormalCdf(t))));
  const density = ends.map((t) => Math.exp(-(t * t + LOG_2_PI) / 2));
  let mean = 0;
  for (let k = 0; k <= scores.length; k++) {
    const from = Math.max(k - 1, 0);
    const isInside = k && k < scores.length;
    const slope = isInside ? (edges[k] - edges[k - 1]) / (scores[k] - scores[k - 1]) : scale;
    const middle = edges[from] + slope * (mu - scores[from]);
    mean += middle * (below[k + 1] - below[k]) + slope * sd * (density[k] - density[k + 1]);
  }
  return mean;
}

/** @type {Omit<ColumnFamily, "at">} */
const LEVELS = {
  logProb: ({ logShares }, u) => logShares[u],
  guess: ({ logShares }) => logShares.indexOf(Math.max(...logShares)),
  draw: ({ logShares }, random) => random.choose(logShares.map(Math.exp)),
  probabilities: ({ logShares }) => logShares.map(Math.exp),
  units: UNITS.code,
};

/** @type {Record<string, ColumnFamily>} */
export const COLUMN_FAMILIES = {
  gaussian: { ...NORMAL, units: UNITS.affine },
  lognormal: { ...NORMAL, units: UNITS.exponential },
  bounded: { ...NORMAL, units: UNITS.between },
  "quantile-gaussian": {
    ...NORMAL,
    at: (read, column) => ({ ...NORMAL.at(read, column), column }),
    logProb(theta, u) {
      const { mu, logSd, column } = theta;
      const k = segmentOf(u, column.scores);
      if (!column.steps.includes(k)) return NORMAL.logProb(theta, u);
      const [a, b] = [column.scores[k - 1], column.scores[k]];
      const sd = Math.exp(logSd);
      return logNormalInterval((a - mu) / sd, (b - mu) / sd) - Math.log(b - a);
    },
    guess: ({ mu, logSd, column }) => UNITS.scores.from(meanOfNumbers(column, mu, Math.exp(logSd)), column),
    units: UNITS.scores,
  },
  "student-t": {
    at: (read) => ({
      mu: read("loc")[0],
      logScale: limited(read("log_scale")[0]) / 2,
      df: 2 + softplus(read("df")[0]),
    }),
    logProb({ mu, logScale, df }, u) {
      const t = (u - mu) * Math.exp(-logScale);
      const constant = logGamma((df + 1) / 2) - logGamma(df / 2) - Math.log(df * Math.PI) / 2;
      return constant - logScale - ((df + 1) / 2) * Math.log1p((t * t) / df);
    },
    guess: ({ mu }) => mu,
    draw: ({ mu, logScale, df }, random) =>
      mu + (Math.exp(logScale) * random.normal()) / Math.sqrt((2 * random.gamma(df / 2)) / df),
    probabilities: null,
    units: UNITS.affine,
  },
  poisson: {
    at: (read) => ({ logRate: limited(read("log_rate")[0], MAX_LOG_RATE) }),
    logProb({ logRate }, u) {
      if (!u) return -Math.exp(logRate);
      const t = logRate - Math.log(u);
      return -u * (Math.expm1(t) - t) - stirlingExcess(u);
    },
    guess: ({ logRate }) => Math.exp(logRate),
    draw: ({ logRate }, random) => random.poisson(Math.exp(logRate)),
    probabilities: null,
    units: UNITS.count,
  },
  "negative-binomial": {
    at: (read) => ({
      logMean: limited(read("log_mean")[0], MAX_LOG_RATE),
      logConcentration: limited(read("log_concentration")[0]),
    }),
    logProb({ logMean, logConcentration }, u) {
      const r = Math.exp(logConcentration);
      const toMean = logMean - logConcentration;
      const toCount = Math.log(u || 1) - logConcentration;
      const log1pRatio = u ? softplus(toCount) : 0;
      const deviance = u * (softplus(-toMean) - softplus(-toCount)) + r * (softplus(toMean) - log1pRatio);
      return -deviance - log1pRatio + stirlingExcess(u + r) - stirlingExcess(u) - stirlingExcess(r);
    },
    guess: ({ logMean }) => Math.exp(logMean),
    draw: ({ logMean, logConcentration }, random) =>
      random.poisson(Math.exp(logMean - logConcentration) * random.gamma(Math.exp(logConcentration))),
    probabilities: null,
    units: UNITS.count,
  },
  bernoulli: {
    ...LEVELS,
    at(read) {
      const [logit] = read("logits");
      return { logShares: [-softplus(logit), -softplus(-logit)] };
    },
  },
  categorical: {
    ...LEVELS,
    at: (read, column) => ({ logShares: logSharesOf(read, column) }),
  },
  "free-ordinal": {
    ...LEVELS,
    at: (read, column) => ({ logShares: logSharesOf(read, column) }),
  },
  histogram: {
    // Levels are the lower tail, the cells and the upper tail.
    at: (read, column) => ({ logShares: logSharesOf(read, column), column }),
    logProb({ logShares }, u) {
      const numCells = logShares.length - 2;
      const level = Math.min(Math.max(Math.floor(u) + 1, 0), numCells + 1);
      return logShares[level] + Math.min(u, 0) - Math.max(u - numCells, 0);
    },
    guess({ logShares, column }) {
      const { edges, scale } = column;
      const last = edges.length - 1;
      const mean = logShares.reduce((/** @type {number} */ sum, /** @type {number} */ logShare, /** @type {number} */ k) => {
        const center = !k ? edges[0] - scale : k > last ? edges[last] + scale : (edges[k - 1] + edges[k]) / 2;
        return sum + Math.exp(logShare) * center;
      }, 0);
      return UNITS.cells.from(mean, column);
    },
    draw({ logShares }, random) {
      const level = random.choose(logShares.map(Math.exp));
      const inside = random.uniform();
      const numCells = logShares.length - 2;
      if (level && level <= numCells) return level - 1 + inside;
      return level ? numCells - Math.log1p(-inside) : Math.log1p(-inside);
    },
    probabilities: null,
    units: UNITS.cells,
  },
  ordinal: {
    ...LEVELS,
    at(read, { num_levels }) {
      const [loc] = read("loc");
      const ends = [-Infinity];
      read("thresholds")
        .slice(0, num_levels - 1)
        .forEach((raw, k) => ends.push(k ? ends[k] + Math.exp(raw) : raw));
      ends.push(Infinity);
      const logShares = ends.slice(1).map((upper, k) => {
        const lower = ends[k];
        return -softplus(loc - upper) - softplus(lower - loc) + Math.log(-Math.expm1(lower - upper));
      });
      return { logShares };
    },
  },
};
