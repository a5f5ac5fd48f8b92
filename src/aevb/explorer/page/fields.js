// The columns of a table as the reader sees them: in the user's units, with names, labels and dates.

/** @typedef {import("./model.js").AnyModel | import("./table_model.js").Columns} AnyModel */
/** @typedef {import("./prediction.js").Expected} Expected */
/**
 * @typedef {object} FieldFacts
 * @property {string} name
 * @property {"number" | "date" | "levels"} kind
 * @property {string[]} [levels]
 * @property {number} [low] end of the slider
 * @property {number} [high]
 * @property {number} [least] smallest number that is allowed
 * @property {number} [most]
 * @property {[number, number]} [observed] smallest and largest number in the data
 * @property {number} [digits]
 * @property {boolean} [is_whole]
 * @property {"linear" | "log" | "log1p"} [scale] of the slider
 * @property {number} [origin] a shown number is origin + factor * number
 * @property {number} [factor]
 * @property {string} [unit]
 * @property {boolean} [has_time]
 * @property {string} [zone]
 * @property {number} [about] the column of which this one says whether it is missing
 */

const SCALES = {
  linear: { to: (/** @type {number} */ v) => v, from: (/** @type {number} */ v) => v },
  log: { to: (/** @type {number} */ v) => Math.log(Math.max(v, Number.MIN_VALUE)), from: Math.exp },
  log1p: { to: (/** @type {number} */ v) => Math.log1p(Math.max(v, 0)), from: Math.expm1 },
};

export class Field {
  /**
   * @param {FieldFacts} facts
   * @param {number} i its place
   * @param {AnyModel} model
   */
  constructor(facts, i, model) {
    this.facts = facts;
    this.i = i;
    this.model = model;
    this.name = facts.name;
    this.levels = facts.levels ?? [];
    this.hasLevels = facts.kind === "levels";
    this.isDate = facts.kind === "date";
    this.scale = SCALES[facts.scale ?? "linear"];
    this.ends = [facts.low ?? 0, facts.high ?? 1];
    /** Slider positions between two whole numbers; a date has the resolution of its steps. */
    const numSteps = facts.is_whole ? (this.ends[1] - this.ends[0]) / (facts.factor ?? 1) : 400;
    this.step = facts.scale === "linear" && numSteps <= 400 ? 1 / numSteps : 1 / 400;
  }

  /**
   * A stored number in the user's units.
   * @param {number} u
   */
  shown(u) {
    const { origin = 0, factor = 1, is_whole: isWhole } = this.facts;
    const x = this.model.toUnits(u, this.i);
    return origin + factor * (isWhole ? Math.round(x) : x);
  }

  /**
   * The stored number of an entry in the user's units; NaN if that is not a number.
   * @param {number} value
   */
  stored(value) {
    const { origin = 0, factor = 1, is_whole: isWhole, least = -Infinity, most = Infinity } = this.facts;
    if (!Number.isFinite(value)) return NaN;
    const x = (Math.min(Math.max(value, least), most) - origin) / factor;
    return this.model.fromUnits(isWhole ? Math.round(x) : x, this.i);
  }

  /**
   * A stored number from an untrusted source, made one that is allowed.
   * @param {number} u
   */
  valid(u) {
    if (this.hasLevels) return Math.min(Math.max(Math.round(u), 0), this.levels.length - 1);
    return this.model.table ? this.model.validNumber(u, this.i) : u;
  }

  /**
   * What is expected, within the range of the data, as rows are drawn.
   * @param {number} u
   */
  expected(u) {
    const { observed } = this.facts;
    const value = this.shown(u);
    return observed ? Math.min(Math.max(value, observed[0]), observed[1]) : value;
  }

  /**
   * The place of a shown number on the slider, from 0 to 1.
   * @param {number} value
   */
  position(value) {
    const [low, high] = this.ends.map(this.scale.to);
    return Math.min(Math.max((this.scale.to(value) - low) / (high - low), 0), 1);
  }

  /** @param {number} position */
  atPosition(position) {
    const [low, high] = this.ends.map(this.scale.to);
    return this.stored(this.scale.from(low + position * (high - low)));
  }

  /**
   * The single best guess, as a stored number: the median, or the most probable level.
   * @param {Expected} expected
   */
  guess({ quantiles, shares }) {
    return this.hasLevels ? shares.indexOf(Math.max(...shares)) : quantiles[2];
  }

  /**
   * An entry in words.
   * @param {number} u
   */
  text(u) {
    return this.hasLevels ? this.label(u) : this.number(this.shown(u));
  }

  /**
   * A drawn or expected entry in words, whole numbers within the range of the data.
   * @param {number} u
   */
  cell(u) {
    return this.hasLevels ? this.label(u) : this.number(this.expected(u));
  }

  /** @param {number} code */
  label(code) {
    return this.levels[Math.round(code)] ?? "";
  }

  /**
   * A shown number as text.
   * @param {number} value
   */
  number(value) {
    if (!Number.isFinite(value)) return "—";
    if (this.isDate) return this.date(value).replace("T", " ") + (this.facts.zone && this.facts.has_time ? " UTC" : "");
    const { digits = 2, unit } = this.facts;
    const options = { minimumFractionDigits: Math.min(digits, 4), maximumFractionDigits: digits };
    const text = Math.abs(value) < 10 ** -digits / 2 ? 0 : value;
    return text.toLocaleString("en-US", options).replace("-", "−") + (unit ? ` ${unit}` : "");
  }

  /**
   * A number or a date as the value of its input field.
   * @param {number} u
   */
  entry(u) {
    const value = this.shown(u);
    if (!Number.isFinite(value)) return "";
    return this.isDate ? this.date(value) : String(Number(value.toFixed(this.facts.digits ?? 2)));
  }

  /** @param {number} milliseconds since 1970 */
  date(milliseconds) {
    const date = new Date(milliseconds);
    if (Number.isNaN(date.getTime())) return "";
    return date.toISOString().slice(0, this.facts.has_time ? 19 : 10);
  }

  /**
   * The stored number of what someone wrote; NaN if it is unknown or not allowed.
   * @param {string} text
   */
  read(text) {
    const written = text.trim();
    if (!written) return NaN;
    if (this.hasLevels) {
      const isSame = (/** @type {string} */ level) => level === written || (level !== "" && Number(level) === Number(written));
      const code = this.levels.findIndex(isSame);
      return code < 0 ? NaN : code;
    }
    if (!this.isDate) return this.stored(Number(written));
    const iso = written.replace(" ", "T");
    return this.stored(Date.parse(/T/.test(iso) && !/(Z|[+-]\d\d:?\d\d)$/.test(iso) ? `${iso}Z` : iso));
  }
}
