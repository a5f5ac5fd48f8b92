// Three ways to move through the latent space: between two points, along each coordinate, and at random from the prior.

import { find, findInput, make, prefersReducedMotion, written, writtenVector } from "./dom.js";
import { newSeed, Random } from "./random.js";
import { rowsOrTiles } from "./rows.js";
import { Tiles } from "./tiles.js";

/** @typedef {import("./app.js").App} App */

const NUM_INTERPOLATED = 9;
const STEPS = Array.from({ length: 13 }, (_, k) => (k - 6) / 2);
const NUM_SAMPLES = 16;
const MOST_ROWS = 12; // coordinates shown

/**
 * The means of p(x|z).
 * @param {App} app
 * @param {Float32Array} z (n, J)
 */
export function decoded(app, z) {
  const p = app.model.decode(z);
  return Array.from({ length: p.length }, (_, s) => app.model.mean(p, s));
}

export class Interpolation {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.slider = findInput("fraction");
    this.isPlaying = false;
    this.tiles = new Tiles(find("interpolation-tiles"), app.painter, (k) => this.go(k / (NUM_INTERPOLATED - 1)));
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    find("set-from").addEventListener("click", () => app.state.set({ from: app.values.z.slice(), isPathShown: true }));
    find("set-to").addEventListener("click", () => app.state.set({ to: app.values.z.slice(), isPathShown: true }));
    find("play").addEventListener("click", () => this.play());
    app.state.on(["from", "to", "level", "isBelowDrawn", "belowSeed"], () => this.show());
    app.state.on(["fraction"], () => (this.slider.value = String(app.values.fraction)));
  }

  /** @param {number} fraction */
  at(fraction) {
    const { from, to } = this.app.values;
    return from.map((start, j) => (1 - fraction) * start + fraction * to[j]);
  }

  /** @param {number} fraction */
  go(fraction) {
    this.app.state.set({ fraction, isPathShown: true });
    this.app.moveTo(this.at(fraction));
  }

  play() {
    this.isPlaying = !this.isPlaying;
    find("play").textContent = this.isPlaying ? "Pause" : "Play";
    const began = performance.now() - 1500 * this.app.values.fraction;
    const next = () => {
      if (!this.isPlaying) return;
      const t = ((performance.now() - began) / 1500) % 2;
      this.go(t < 1 ? t : 2 - t);
      if (prefersReducedMotion()) setTimeout(next, 400);
      else requestAnimationFrame(next);
    };
    next();
  }

  show() {
    const z = new Float32Array(NUM_INTERPOLATED * this.app.J);
    for (let k = 0; k < NUM_INTERPOLATED; k++) z.set(this.at(k / (NUM_INTERPOLATED - 1)), k * this.app.J);
    this.tiles.show(
      decoded(this.app, this.app.settled(z)),
      (k) => `${Math.round((100 * k) / (NUM_INTERPOLATED - 1))} % of the way from A to B`,
    );
  }
}

export class Traversals {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Tiles[]} */
    this.rows = [];
    /** @type {number | undefined} */
    this.timer = undefined;
    app.state.on(["z"], () => this.scheduleShow());
    app.state.on(["basis", "level"], () => this.build());
    this.build();
  }

  build() {
    const { app } = this;
    const place = find("traversal-rows");
    place.replaceChildren();
    this.rows = app.basis.names.slice(0, MOST_ROWS).map((name, k) => {
      const tiles = make("div", { class: "tiles strip", role: "group", "aria-label": `Along ${name}` });
      const heading = make("span", { class: "traversal-name", text: name });
      place.append(make("div", { class: "traversal-row" }, [heading, tiles]));
      return new Tiles(tiles, app.painter, (step) => this.go(k, STEPS[step]));
    });
    this.scheduleShow();
  }

  /**
   * @param {number} k
   * @param {number} value
   */
  go(k, value) {
    const c = this.app.basis.coordinates(this.app.values.z);
    c[k] = value;
    this.app.moveTo(this.app.basis.latent(c));
  }

  /** Update with a delay: while z is being dragged, only the output follows immediately. */
  scheduleShow() {
    if (this.timer !== undefined) return;
    this.timer = window.setTimeout(() => {
      this.timer = undefined;
      this.show();
    }, 120);
  }

  show() {
    const { app } = this;
    const c = app.basis.coordinates(app.values.z);
    this.rows.forEach((tiles, k) => {
      const z = new Float32Array(STEPS.length * app.J);
      STEPS.forEach((value, s) => z.set(app.basis.latent(c.map((own, i) => (i === k ? value : own))), s * app.J));
      const current = Math.abs(c[k]) < 3.25 ? STEPS.indexOf(Math.round(2 * c[k]) / 2 || 0) : -1;
      tiles.show(decoded(app, app.settled(z)), (s) => `${app.basis.names[k].split(" ")[0]} = ${written(STEPS[s], 1)}`, current);
    });
  }
}

export class Samples {
  /**
   * @param {App} app
   * @param {() => void} onSamples
   */
  constructor(app, onSamples) {
    this.app = app;
    this.onSamples = onSamples;
    this.slider = findInput("temperature");
    this.tiles = rowsOrTiles(find("samples-tiles"), app, (k) => app.jumpTo(app.samples[k].slice()));
    this.slider.addEventListener("input", () => app.state.set({ temperature: Number(this.slider.value) }));
    find("samples-again").addEventListener("click", () => app.state.set({ sampleSeed: newSeed() }));
    // The plane shows them after the first interaction with this card.
    for (const name of ["click", "input"])
      find("samples").addEventListener(name, () => (app.areSamplesShown = true), true);
    app.state.on(["temperature", "sampleSeed"], () => this.show());
  }

  show() {
    const { app } = this;
    const { temperature, sampleSeed } = app.values;
    this.slider.value = String(temperature);
    find("temperature-value").textContent = written(temperature, 2);
    const z = app.levels.draws(new Random(sampleSeed + 7919), NUM_SAMPLES, temperature);
    app.samples = Array.from({ length: NUM_SAMPLES }, (_, s) => z.slice(s * app.J, (s + 1) * app.J));
    const random = new Random(sampleSeed);
    const p = app.model.decode(z);
    const rows = app.isTable ? app.samples.map((_, s) => app.model.draw(p, random, s)) : decoded(app, z);
    this.tiles.show(
      rows,
      (k) => `Sample ${k + 1}, at z = ${writtenVector(app.samples[k])}${app.rowInWords(rows[k])}`,
    );
    this.onSamples();
  }
}
