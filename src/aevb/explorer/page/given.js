// Models of x given y: the networks at a chosen y, and the switch that chooses it.

import { findAny, fixed, run } from "./conv.js";
import { find, make, written } from "./dom.js";
import { COLUMN_FAMILIES } from "./families.js";
import { conditioned } from "./network.js";
import { featuresOf } from "./table_model.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./arrays.js").NamedArray} NamedArray */
/** @typedef {import("./network.js").Network} Network */
/** @typedef {import("./families.js").ColumnFacts & { name: string, levels: string[] | null }} GivenColumn */
/**
 * @typedef {object} GivenFacts
 * @property {GivenColumn[]} columns
 * @property {Record<string, [number, number][]>} features
 * @property {boolean} has_missing
 * @property {boolean} is_classifier
 */

const MOST_BUTTONS = 12; // labels; of more there is a menu

/** What the model is conditioned on. */
export class Given {
  /**
   * @param {GivenFacts} facts
   * @param {import("./model.js").AnyModel} model whose networks read y after z or x
   * @param {Map<string, NamedArray>} arrays
   * @param {import("./model.js").Description} description
   */
  constructor(facts, model, arrays, description) {
    this.facts = facts;
    this.model = model;
    this.decoder = model.decoder;
    this.encoder = model.encoder;
    this.lower = model.levels.lower;
    this.upper = model.levels.upper;
    this.labels = facts.is_classifier ? findAny(arrays, "encoder.label", description) : null;
    this.size = facts.columns.length;
  }

  /**
   * Condition the networks of the model on y.
   * @param {Float32Array} y (D',), stored numbers
   * @param {Uint8Array | null} [missing] (D',)
   */
  use(y, missing = null) {
    const features = featuresOf(this.facts, y, missing);
    const { levels } = this.model;
    if (levels.codes) {
      // Of M1+M2, only the networks between the two levels read y.
      const between = (/** @type {Network | null} */ network) => network && conditioned(network, features);
      [levels.lower, levels.upper] = [this.lower.map(between), this.upper.map(between)];
      return;
    }
    this.model.decoder = fixed(this.decoder, features);
    if (this.encoder) this.model.encoder = fixed(this.encoder, features);
  }

  /**
   * q(y|x) of a classifier.
   * @param {Float32Array} x (D,)
   * @param {Uint8Array | null} missing
   * @returns {Float64Array | null} (K,)
   */
  probabilities(x, missing) {
    if (!this.labels) return null;
    const { levels } = this.model;
    const read = levels.codes ? levels.read(this.model.first(x, missing).mu) : this.model.inputs(x, missing);
    const logits = run(this.labels, read);
    const most = Math.max(...logits);
    const shares = Float64Array.from(logits, (logit) => Math.exp(logit - most));
    const sum = shares.reduce((total, share) => total + share, 0);
    return shares.map((share) => share / sum);
  }

  /**
   * An untrusted y, made one that the model knows.
   * @param {Float32Array} y
   */
  valid(y) {
    return y.map((value, i) => {
      const { levels } = this.facts.columns[i];
      return levels ? Math.min(Math.max(Math.round(value), 0), levels.length - 1) : Math.min(Math.max(value, -10), 10);
    });
  }

  /**
   * y in words.
   * @param {Float32Array} y
   */
  written(y) {
    const text = this.facts.columns.map((column, i) => `${column.name} = ${this.cell(y, i)}`);
    return text.join(", ");
  }

  /**
   * @param {Float32Array} y
   * @param {number} i
   */
  cell(y, i) {
    const column = this.facts.columns[i];
    if (column.levels) return column.levels[y[i]];
    return written(COLUMN_FAMILIES[column.family].units.to(y[i], column), 3);
  }
}

/**
 * Add the switch for y.
 * @param {App} app
 */
export function addSwitch(app) {
  const { given } = app;
  if (!given) return;
  if (app.levels.codes) find("given-words").textContent =
    "Between the two levels, p(z₁|z₂, y) and q(z₂|z₁, y) depend on y: choose another y above, and z₂ stays the same.";
  const place = find("given");
  place.hidden = false;
  /** @type {(() => void)[]} */
  const shows = [];
  const rows = given.facts.columns.map((column, i) => {
    /** @param {number} value */
    const choose = (value) => app.chooseY(app.values.y.map((old, k) => (k === i ? value : old)));
    const make = column.levels ? (column.levels.length <= MOST_BUTTONS ? buttons : menu) : slider;
    return make(app, i, choose, shows);
  });
  place.replaceChildren(...rows);
  const show = () => shows.forEach((action) => action());
  app.state.on(["y", "x", "missing", "source", "z"], show);
  show();
}

/** @typedef {(app: App, i: number, choose: (value: number) => void, shows: (() => void)[]) => HTMLElement} Control */

/** @type {Control} */
function buttons(app, i, choose, shows) {
  const column = /** @type {Given} */ (app.given).facts.columns[i];
  const chips = (column.levels ?? []).map((name, level) => {
    const share = make("small", {});
    const chip = make("button", { type: "button", class: "chip", "aria-pressed": "false", "data-level": level }, [
      make("span", { text: name }),
      share,
    ]);
    chip.addEventListener("click", () => choose(level));
    return { chip, share };
  });
  shows.push(() => {
    const { x, missing, y } = app.values;
    const shares = x && (app.model.encodesMissing || !missing.some(Boolean)) && app.given?.probabilities(x, missing);
    chips.forEach(({ chip, share }, level) => {
      chip.setAttribute("aria-pressed", String(y[i] === level));
      share.textContent = shares ? ` ${Math.round(100 * shares[level])} %` : "";
    });
  });
  return row(column.name, chips.map(({ chip }) => chip));
}

/** @type {Control} */
function menu(app, i, choose, shows) {
  const column = /** @type {Given} */ (app.given).facts.columns[i];
  const options = (column.levels ?? []).map((name, level) => make("option", { value: level, text: name }));
  const select = make("select", { "aria-label": column.name }, options);
  select.addEventListener("change", () => choose(Number(select.value)));
  shows.push(() => (select.value = String(app.values.y[i])));
  return row(column.name, [select]);
}

/** @type {Control} */
function slider(app, i, choose, shows) {
  const given = /** @type {Given} */ (app.given);
  const column = given.facts.columns[i];
  const [low, high] = app.givenEnds(i);
  const step = column.family === "poisson" || column.family === "negative-binomial" ? 1 : (high - low) / 200;
  const input = make("input", { type: "range", min: low, max: high, step, "aria-label": column.name });
  const number = make("span", { class: "number" });
  input.addEventListener("input", () => choose(Number(input.value)));
  shows.push(() => {
    if (document.activeElement !== input) input.value = String(app.values.y[i]);
    number.textContent = given.cell(app.values.y, i);
  });
  return row(column.name, [input, number]);
}

/**
 * @param {string} name
 * @param {HTMLElement[]} parts
 */
function row(name, parts) {
  return make("div", { class: "given-row", role: "group", "aria-label": name }, [
    make("span", { class: "name", text: name }),
    ...parts,
  ]);
}
