// The model of a table: each column of x has a family of its own, and entries may be missing.

import { findAny, run } from "./conv.js";
import { COLUMN_FAMILIES } from "./families.js";
import { Levels } from "./levels.js";
import { gaussianOf } from "./network.js";

/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {import("./families.js").ColumnFacts} ColumnFacts */
/** @typedef {import("./random.js").Random} Random */
/**
 * @typedef {object} TableFacts
 * @property {ColumnFacts[]} columns
 * @property {Record<string, [number, number][]>} features for each kind, pairs of a column and a level
 * @property {boolean} has_missing whether the encoder sees which entries are observed
 */
/** @typedef {{ outputs: Float32Array, length: number }} TableLikelihood p(x|z) of several z */

const TAPER = 2; // standard deviations up to which the encoder sees numbers as they are

/** @type {Record<string, (u: number, level: number, column: ColumnFacts) => number>} What the encoder sees of x. */
const FEATURES = {
  numbers(u) {
    const size = Math.abs(u);
    return Math.sign(u) * (Math.min(size, TAPER) + Math.log1p(Math.max(size - TAPER, 0)));
  },
  counts: (u, _, { loc, scale }) => (Math.log1p(u) - loc) / scale,
  binary: (u) => 2 * u - 1,
  categories: (u, level) => (u === level ? 1 : 0),
  orders: (u, level) => (u > level ? 1 : -1),
  ranks(u, _, { outputs, num_levels }) {
    const shares = outputs.logits.shift.slice(0, num_levels).map(Math.exp);
    const below = shares.reduce((sum, share, k) => sum + share * Math.min(Math.max(u + 1 - k, 0), 1), 0);
    return Math.sqrt(12) * (below - 0.5);
  },
  spikes: (u, level) => (Math.floor(u) + 1 === level ? 1 : 0),
};

/**
 * What networks see of the entries of rows, zero where they are missing.
 * @param {Pick<TableFacts, "columns" | "features" | "has_missing">} table
 * @param {Float32Array} x (n, D)
 * @param {Uint8Array | null} missing (n, D)
 */
export function featuresOf(table, x, missing) {
  const D = table.columns.length;
  const n = x.length / D;
  const input = [];
  for (let s = 0; s < n; s++) {
    for (const [kind, pairs] of Object.entries(table.features)) {
      for (const [i, level] of pairs) {
        const isMissing = missing && missing[s * D + i];
        input.push(isMissing ? 0 : FEATURES[kind](x[s * D + i], level, table.columns[i]));
      }
    }
    if (table.has_missing) for (let i = 0; i < D; i++) input.push(missing && missing[s * D + i] ? 0 : 1);
  }
  return Float32Array.from(input);
}

const FARTHEST = 100; // standard deviations, or positions beyond the last cell

/** Columns and their units. */
export class Columns {
  /** @param {{ columns: ColumnFacts[] }} table */
  constructor(table) {
    this.table = table;
    this.families = table.columns.map(({ family }) => {
      if (!(family in COLUMN_FAMILIES)) throw new Error(`an unknown family of columns: ${family}`);
      return COLUMN_FAMILIES[family];
    });
  }

  /**
   * @param {number} u stored number of a column
   * @param {number} i
   */
  toUnits(u, i) {
    return this.families[i].units.to(u, this.table.columns[i]);
  }

  /**
   * The allowed stored number for a number in the user's units.
   * @param {number} x
   * @param {number} i
   */
  fromUnits(x, i) {
    return this.families[i].units.from(x, this.table.columns[i]);
  }

  /**
   * An untrusted stored number, made one that the family allows.
   * @param {number} u
   * @param {number} i
   */
  validNumber(u, i) {
    const isCount = this.families[i].units === COLUMN_FAMILIES.poisson.units;
    return isCount ? this.fromUnits(u, i) : Math.min(Math.max(u, -FARTHEST), FARTHEST + this.table.columns[i].num_levels);
  }
}

export class TableModel extends Columns {
  isBernoulli = false;
  inUnitInterval = false;
  units = null;

  /**
   * @param {import("./model.js").Description} description
   * @param {TableFacts} table
   * @param {Map<string, NamedArray>} arrays
   */
  constructor(description, table, arrays) {
    super(table);
    const decoder = findAny(arrays, "decoder", description);
    if (!decoder) throw new Error("the page does not contain a decoder");
    this.latentDim = description.latent_dim;
    this.dataDim = description.data_dim;
    this.levels = new Levels(description, arrays);
    this.decoder = decoder;
    this.encoder = findAny(arrays, "encoder", description);
    this.table = table;
    /** Whether the encoder gives q(z | observed entries). */
    this.encodesMissing = table.has_missing;
  }

  /**
   * The encoder's input.
   * @param {Float32Array} x (n, D)
   * @param {Uint8Array | null} missing (n, D)
   */
  inputs(x, missing) {
    return featuresOf(this.table, x, missing);
  }

  /**
   * q(z | the observed entries of x); if the encoder was never shown missing entries, a guess of it.
   * @param {Float32Array} x (n, D)
   * @param {Uint8Array | null} [missing] (n, D)
   * @returns {import("./network.js").Gaussian} (n, J) each
   */
  encode(x, missing = null) {
    return this.levels.posterior(this.first(x, missing));
  }

  /**
   * What the encoder says of the level next to the data.
   * @param {Float32Array} x (n, D)
   * @param {Uint8Array | null} missing (n, D)
   */
  first(x, missing) {
    if (!this.encoder) throw new Error("the model has no encoder");
    return gaussianOf(run(this.encoder, this.inputs(x, missing)), this.levels.sizes[0]);
  }

  /**
   * p(x|z) at several z.
   * @param {Float32Array} z (n, J)
   * @returns {TableLikelihood}
   */
  decode(z) {
    return { outputs: run(this.decoder, this.levels.part(z, 0)), length: z.length / this.latentDim };
  }

  /**
   * The parameters of a column at one z.
   * @param {TableLikelihood} p
   * @param {number} s
   * @param {number} i
   */
  theta({ outputs }, s, i) {
    const column = this.table.columns[i];
    const base = s * this.decoder.outSize;
    return this.families[i].at(
      (name) =>
        column.outputs[name]?.shift.map((shift, k) => outputs[base + column.outputs[name].first + k] + shift) ??
        column.shared[name],
      column,
    );
  }

  /**
   * log p(x_i|z) in nats, in the user's units.
   * @param {TableLikelihood} p
   * @param {number} s
   * @param {number} i
   * @param {number} u
   * @param {number} [_noise] which these models do not have
   */
  logProb(p, s, i, u, _noise = 0) {
    const { units, logProb } = this.families[i];
    return logProb(this.theta(p, s, i), u) - units.logSlope(u, this.table.columns[i]);
  }

  /**
   * The means of numbers and the most probable levels.
   * @param {TableLikelihood} p
   * @param {number} s
   * @returns {Float32Array} (D,)
   */
  mean(p, s = 0) {
    return Float32Array.from(this.families, (_, i) => this.meanColumn(p, s, i));
  }

  /**
   * @param {TableLikelihood} p
   * @param {number} s
   * @param {number} i
   */
  meanColumn(p, s, i) {
    return this.families[i].guess(this.theta(p, s, i));
  }

  /**
   * A draw x ~ p(x|z).
   * @param {TableLikelihood} p
   * @param {Random} random
   * @param {number} s
   */
  draw(p, random, s = 0) {
    return Float32Array.from(this.families, (_, i) => this.drawColumn(p, random, s, i));
  }

  /**
   * @param {TableLikelihood} p
   * @param {Random} random
   * @param {number} s
   * @param {number} i
   */
  drawColumn(p, random, s, i) {
    return this.families[i].draw(this.theta(p, s, i), random);
  }

  /**
   * The probabilities of the levels of a column, or null if it has none.
   * @param {TableLikelihood} p
   * @param {number} s
   * @param {number} i
   */
  probabilities(p, s, i) {
    const { probabilities } = this.families[i];
    return probabilities && probabilities(this.theta(p, s, i));
  }

  /**
   * Noise is not defined for columns of different kinds.
   * @param {Float32Array} x
   * @param {number} _level
   * @param {Random} _random
   */
  corrupt(x, _level, _random) {
    return x;
  }
}
