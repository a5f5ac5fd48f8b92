// The entry point of the page of sequences: choose one, and move through its time.

import { readArrays } from "./arrays.js";
import { find, findCanvas, findInput, make } from "./dom.js";
import { drawPanel, stepAt } from "./sequence_panel.js";
import { drawPath, nearestOnPath } from "./sequence_path.js";
import { said } from "./sequence_words.js";
import { addColours } from "./share.js";

/** @typedef {import("./arrays.js").Entry} Entry */
/**
 * A column of numbers as a line with bands, or labels as a roll with a row for each.
 * @typedef {object} Panel
 * @property {string} name
 * @property {string[]} rows of a roll; none for a line
 * @property {Float32Array} observed (T) numbers, NaN if missing; or (T, R) of 0 and 1, MISSING if missing
 * @property {Float32Array} expected (T + steps, Q) quantiles; or (T + steps, R) probabilities in units of 1 / 255
 */
/**
 * @typedef {object} View
 * @property {string} name
 * @property {string[] | null} times as text, of the observed steps
 * @property {number} length T
 * @property {Float32Array} positions (T + steps)
 * @property {Float32Array} path (T, 2)
 * @property {Panel[]} panels
 */
/**
 * @typedef {object} Facts
 * @property {string} title
 * @property {string} lead
 * @property {string} version
 * @property {string[]} axes of the plane
 * @property {number} steps of the forecasts
 * @property {string} unit
 * @property {number[]} levels of the bands
 * @property {{ name: string, times: string[] | null, panels: { name: string, rows: string[] }[] }[]} sequences
 * @property {Entry[]} arrays
 */

const FRAME = 90; // milliseconds per step, while it plays

async function start() {
  /** @type {Facts} */
  const facts = JSON.parse(find("facts").textContent ?? "");
  const arrays = await readArrays(facts.arrays, find("arrays").textContent ?? "");
  const views = facts.sequences.map((_, number) => viewOf(facts, arrays, number));
  find("title").textContent = facts.title;
  find("lead").textContent = facts.lead;
  find("version").textContent = facts.version;
  find("no-forecast").hidden = facts.steps > 0;
  find("axes-words").textContent = `Horizontal: ${facts.axes[0]}; vertical: ${facts.axes[1]}.`;
  const app = new SequenceApp(facts, views);
  addColours(() => app.draw());
  document.documentElement.dataset.ready = "yes";
  Object.assign(globalThis, { explorer: { app } }); // for the console, and for tests
}

/**
 * @param {Facts} facts
 * @param {Map<string, { values: Float32Array }>} arrays
 * @param {number} number
 * @returns {View}
 */
function viewOf(facts, arrays, number) {
  const { name, times, panels } = facts.sequences[number];
  const take = (/** @type {string} */ part) => {
    const found = arrays.get(`${number}/${part}`);
    if (!found) throw new Error(`the page has no array ${number}/${part}`);
    return found.values;
  };
  const path = take("path");
  return {
    name,
    times,
    length: path.length / 2,
    positions: take("positions"),
    path,
    panels: panels.map((panel, place) => ({
      ...panel,
      observed: take(`observed/${place}`),
      expected: take(`expected/${place}`),
    })),
  };
}

class SequenceApp {
  /**
   * @param {Facts} facts
   * @param {View[]} views
   */
  constructor(facts, views) {
    this.facts = facts;
    this.views = views;
    this.timer = 0;
    const [number, step] = location.hash.slice(1).split(".").map(Number);
    this.number = number in views ? number : 0;
    this.step = step >= 0 && step < this.view.positions.length ? step : this.view.length - 1;
    this.listen();
    this.choose(this.number, this.step);
    new ResizeObserver(() => this.draw()).observe(find("panels"));
  }

  get view() {
    return this.views[this.number];
  }

  listen() {
    const menu = /** @type {HTMLSelectElement} */ (find("sequence"));
    menu.append(...this.views.map((view, number) => make("option", { value: number, text: view.name })));
    menu.addEventListener("change", () => this.choose(Number(menu.value)));
    find("previous").addEventListener("click", () => this.choose(this.number - 1));
    find("next").addEventListener("click", () => this.choose(this.number + 1));
    find("play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    findInput("step").addEventListener("input", () => this.goTo(Number(findInput("step").value)));
    const path = findCanvas("path");
    const drag = (/** @type {PointerEvent} */ event) => {
      if (event.buttons & 1) this.goTo(nearestOnPath(path, this.view, event.offsetX, event.offsetY));
    };
    path.addEventListener("pointerdown", drag);
    path.addEventListener("pointermove", drag);
  }

  /**
   * Show another sequence.
   * @param {number} number
   * @param {number} [step] by default the last that was observed
   */
  choose(number, step) {
    this.pause();
    this.number = (number + this.views.length) % this.views.length;
    this.step = step ?? this.view.length - 1;
    const menu = /** @type {HTMLSelectElement} */ (find("sequence"));
    menu.value = String(this.number);
    findInput("step").max = String(this.view.positions.length - 1);
    find("panels").replaceChildren(...this.view.panels.map((panel) => this.figure(panel)));
    this.draw();
  }

  /** @param {Panel} panel */
  figure(panel) {
    const canvas = make("canvas", { role: "img", "aria-label": `${panel.name}: observed and expected over time` });
    const drag = (/** @type {PointerEvent} */ event) => {
      if (event.buttons & 1) this.goTo(stepAt(canvas, this.view, event.offsetX));
    };
    canvas.addEventListener("pointerdown", drag);
    canvas.addEventListener("pointermove", drag);
    const words = make("span", { class: "small" });
    return make("figure", { class: "panel" }, [
      make("figcaption", {}, [make("b", { text: panel.name }), words]),
      canvas,
    ]);
  }

  /** @param {number} step */
  goTo(step) {
    this.step = Math.min(Math.max(step, 0), this.view.positions.length - 1);
    this.draw();
  }

  play() {
    if (this.step === this.view.positions.length - 1) this.goTo(0);
    find("play").textContent = "Pause";
    this.timer = window.setInterval(() => {
      this.goTo(this.step + 1);
      if (this.step === this.view.positions.length - 1) this.pause();
    }, FRAME);
  }

  pause() {
    window.clearInterval(this.timer);
    this.timer = 0;
    find("play").textContent = "Play";
  }

  /** Draw everything at the present step. */
  draw() {
    const { view, step, facts } = this;
    const when = said.time(view, step, facts.unit);
    const slider = findInput("step");
    slider.value = String(step);
    slider.setAttribute("aria-valuetext", when);
    find("when").textContent = when;
    [...find("panels").children].forEach((figure, place) => {
      const panel = view.panels[place];
      const [canvas, words] = [figure.querySelector("canvas"), figure.querySelector("span")];
      if (canvas) drawPanel(canvas, view, panel, step, facts.levels.length);
      if (words) words.textContent = said.panel(view, panel, step, facts.levels);
    });
    drawPath(findCanvas("path"), view, step);
    history.replaceState(null, "", `#${this.number}.${step}`);
  }
}

start().catch((error) => {
  find("failure").hidden = false;
  find("failure").textContent =
    `The page could not start: ${error instanceof Error ? error.message : error}. It needs a browser from 2023 or later.`;
  throw error;
});
