// The entry point of the page of a regressor: choose x, and see p(y|x).

import { readArrays } from "./arrays.js";
import { drawDensity, drawFan, meanInWords } from "./density.js";
import { find, findCanvas, make } from "./dom.js";
import { addFieldRow, bar } from "./field_rows.js";
import { Field } from "./fields.js";
import { Predictor } from "./predictor.js";
import { addColours } from "./share.js";
import { Columns } from "./table_model.js";

/** @typedef {import("./predictor.js").Predicted} Predicted */
/**
 * @typedef {object} Facts
 * @property {string} title
 * @property {string} name
 * @property {string} version
 * @property {import("./model.js").Description} model
 * @property {import("./fields.js").FieldFacts[]} inputs
 * @property {import("./fields.js").FieldFacts[]} targets
 * @property {boolean} are_held_out
 * @property {import("./arrays.js").Entry[]} arrays
 */

const [NUM_POSITIONS, FAN_DRAWS] = [41, 120];
const MILLISECONDS = 8; // of a frame, for the picture along an input
const MOST_BARS = 12;

export class PredictionApp {
  /**
   * @param {Facts} facts
   * @param {Map<string, import("./arrays.js").NamedArray>} arrays
   */
  constructor(facts, arrays) {
    const { given } = facts.model;
    const [inputs, targets] = [arrays.get("inputs"), arrays.get("targets")];
    if (!given || !inputs || !targets) throw new Error("the page does not contain the data");
    this.predictor = new Predictor(facts.model, arrays);
    this.areHeldOut = facts.are_held_out;
    this.hasMissing = given.has_missing;
    this.inputs = facts.inputs.map((field, i) => new Field(field, i, new Columns(given)));
    this.targets = facts.targets.map((field, i) => new Field(field, i, this.predictor.model));
    this.rows = { inputs: inputs.values, targets: targets.values, length: inputs.shape[0] };
    this.x = new Float32Array(this.inputs.length);
    this.missing = new Uint8Array(this.inputs.length);
    /** @type {number | null} the row that x is, if it is one */
    this.source = null;
    /** @type {Predicted[]} */
    this.predicted = [];
    this.along = Math.max(this.inputs.findIndex((field) => !field.hasLevels), 0);
    /** @type {number[][]} quantiles of the first target at each position of that input */
    this.bands = [];
    this.isWaiting = false;
    const place = find("inputs");
    this.lines = this.inputs.map((field, i) =>
      addFieldRow(field, place, { set: (u) => this.set(i, u), release: () => this.release(i) }),
    );
    this.figures = this.targets.map((field) => figureOf(field));
    find("targets").replaceChildren(...this.figures.map(({ node }) => node));
    find("row").addEventListener("click", () => this.load(Math.floor(Math.random() * this.rows.length)));
    this.addAlong();
    new ResizeObserver(() => this.draw()).observe(find("targets"));
    this.load(0);
  }

  /**
   * Use a real row.
   * @param {number} number
   */
  load(number) {
    const D = this.inputs.length;
    const row = this.rows.inputs.subarray(number * D, (number + 1) * D);
    this.x = row.map((value) => (Number.isNaN(value) ? 0 : value));
    this.missing = Uint8Array.from(row, (value) => Number(Number.isNaN(value)));
    this.source = number;
    this.show();
  }

  /**
   * @param {number} i
   * @param {number} u
   */
  set(i, u) {
    this.x[i] = this.inputs[i].valid(u);
    this.missing[i] = 0;
    this.source = null;
    this.show();
  }

  /** @param {number} i */
  release(i) {
    if (this.hasMissing) this.missing[i] = 1;
    this.source = null;
    this.show();
  }

  show() {
    this.predicted = this.predictor.predict(this.x, this.missing);
    this.lines.forEach((line, i) => line.show({ isKnown: !this.missing[i], u: this.x[i], expected: null }));
    find("source").textContent = this.source === null ? "" : `Row ${this.source + 1} of ${this.rows.length}${this.areHeldOut ? " held-out rows" : " rows"}. `;
    this.begin();
    this.draw();
  }

  draw() {
    const T = this.targets.length;
    this.figures.forEach((figure, i) => {
      const actual = this.source === null ? NaN : this.rows.targets[this.source * T + i];
      figure.show(this.predicted[i], actual);
    });
    this.drawAlong();
  }

  /** The choice of the input of the second picture. */
  addAlong() {
    const select = /** @type {HTMLSelectElement} */ (find("along"));
    const numbers = this.inputs.filter((field) => !field.hasLevels);
    find("fan-card").hidden = !numbers.length || this.targets[0].hasLevels;
    select.replaceChildren(...numbers.map((field) => make("option", { value: field.i, text: field.name })));
    select.addEventListener("change", () => {
      this.along = Number(select.value);
      this.begin();
    });
    find("fan-target").textContent = this.targets[0].name;
  }

  /** Compute the second picture again, a few positions per frame. */
  begin() {
    this.bands = [];
    if (this.isWaiting || find("fan-card").hidden) return;
    this.isWaiting = true;
    requestAnimationFrame(() => this.work());
  }

  work() {
    const end = performance.now() + MILLISECONDS;
    const field = this.inputs[this.along];
    while (this.bands.length < NUM_POSITIONS && performance.now() < end) {
      const x = this.x.slice();
      const missing = this.missing.slice();
      x[this.along] = field.atPosition(this.bands.length / (NUM_POSITIONS - 1));
      missing[this.along] = 0;
      this.bands.push(this.predictor.predict(x, missing, FAN_DRAWS)[0].quantiles);
    }
    this.isWaiting = this.bands.length < NUM_POSITIONS;
    if (this.isWaiting) requestAnimationFrame(() => this.work());
    else this.drawAlong();
  }

  drawAlong() {
    if (this.bands.length < NUM_POSITIONS) return; // the last picture stays until the next is complete
    const input = this.inputs[this.along];
    const now = this.missing[this.along] ? NaN : input.position(input.shown(this.x[this.along]));
    const positions = this.bands.map((_, k) => k / (NUM_POSITIONS - 1));
    drawFan(findCanvas("fan"), { input, target: this.targets[0], positions, bands: this.bands, now });
  }
}

/**
 * The picture of one target.
 * @param {Field} field
 */
function figureOf(field) {
  const words = make("span", { class: "small" });
  const heading = make("figcaption", {}, [make("b", { text: field.name }), words]);
  const body = field.hasLevels
    ? make("div", { class: "levels" })
    : make("canvas", { class: "density", role: "img", "aria-label": `The density of ${field.name}` });
  const node = make("figure", { class: "panel" }, [heading, body]);
  return {
    node,
    /**
     * @param {Predicted} predicted
     * @param {number} actual
     */
    show(predicted, actual) {
      const known = Number.isNaN(actual) ? "" : ` · in the data ${field.text(actual)}`;
      if (body instanceof HTMLCanvasElement) {
        const [q05, , q50, , q95] = predicted.quantiles.map((u) => field.number(field.shown(u)));
        const mean = meanInWords(field, predicted.mean);
        words.textContent = `mean ${mean} · median ${q50} · 90 % from ${q05} to ${q95}${known}`;
        drawDensity(body, field, predicted, actual);
        return;
      }
      const best = predicted.shares.indexOf(Math.max(...predicted.shares));
      words.textContent = `most probable ${field.label(best)}${known}`;
      body.replaceChildren(...predicted.shares.slice(0, MOST_BARS).map((share, code) => bar(field.label(code), share, "others")));
    },
  };
}

async function start() {
  /** @type {Facts} */
  const facts = JSON.parse(find("facts").textContent ?? "");
  const arrays = await readArrays(facts.arrays, find("arrays").textContent ?? "");
  const J = facts.model.latent_dim;
  find("title").textContent = facts.title;
  find("lead").textContent =
    `${facts.name ? `${facts.name}: ` : ""}p(y|x) as the average of p(y|x, z) over ${J} latent variable${J === 1 ? "" : "s"} z drawn from p(z|x).`;
  find("version").textContent = facts.version;
  document.documentElement.classList.toggle("no-missing", !facts.model.given?.has_missing);
  const app = new PredictionApp(facts, arrays);
  addColours(() => app.draw());
  document.documentElement.dataset.ready = "yes";
  Object.assign(globalThis, { explorer: { app } }); // for the console, and for tests
}

start().catch((error) => {
  find("failure").hidden = false;
  find("failure").textContent =
    `The page could not start: ${error instanceof Error ? error.message : error}. It needs a browser from 2023 or later.`;
  throw error;
});
