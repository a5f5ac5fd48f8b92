// The card with several completions of an input with missing parts or noise; of a table, possible rows.

import { Completer } from "./completion.js";
import { find, writtenVector } from "./dom.js";
import { Prediction } from "./prediction.js";
import { newSeed } from "./random.js";
import { rowsOrTiles } from "./rows.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./completion.js").Completion} Completion */

const TABLE_DRAWS = 320; // of z per round: the networks of tables are small, and intervals need more than pictures

export class Completions {
  /**
   * @param {App} app
   * @param {() => void} onParticles
   * @param {() => void} onPrediction
   */
  constructor(app, onParticles, onPrediction) {
    this.app = app;
    this.onParticles = onParticles;
    this.onPrediction = onPrediction;
    /** @type {Completion[]} */
    this.found = [];
    /** @type {Completer | null} */
    this.job = null;
    /** @type {Prediction | null} */
    this.prediction = null;
    this.isWaiting = false;
    this.tiles = rowsOrTiles(find("completion-tiles"), app, (k) => app.jumpTo(this.found[k].z.slice()));
    find("complete-again").addEventListener("click", () => app.state.set({ completionSeed: newSeed() }));
    app.state.on(["x", "missing", "noise", "completionSeed"], () => this.begin());
  }

  get isNeeded() {
    const { x, missing, noise } = this.app.values;
    if (x === null || this.app.model.encoder === null) return false;
    return this.app.isListed || noise > 0 || missing.some(Boolean);
  }

  begin() {
    const { app } = this;
    const { x, missing, noise, completionSeed: seed } = app.values;
    const isNeeded = this.isNeeded;
    const isVaried = isNeeded && (noise > 0 || missing.some(Boolean));
    find("completions").classList.toggle("empty", !isVaried);
    find("roll-block").hidden = isVaried; // show one or the other
    const options = app.isListed ? { seed, numDraws: TABLE_DRAWS } : { seed };
    this.job = isNeeded && x ? new Completer(app.model, x, missing, noise, options) : null;
    this.prediction = this.job && x && app.isListed ? new Prediction(app.model, x, missing, seed) : null;
    if (!isNeeded) {
      this.found = [];
      this.tiles.show([], String);
      find("completion-words").textContent = "";
      if (app.particles.length) {
        app.particles = [];
        this.onParticles();
      }
    } else if (!this.isWaiting) this.scheduleRound();
  }

  /** One round at a time, so that the page stays responsive and the completions can be seen to settle. */
  scheduleRound() {
    this.isWaiting = true;
    setTimeout(() => {
      this.isWaiting = false;
      this.work();
    }, 30);
  }

  work() {
    const { app, job } = this;
    if (!job) return;
    const { completions, round, numRounds, effective, pool } = job.step();
    this.found = completions;
    this.tiles.show(
      completions.map(({ mean, draw }) => (app.isTable ? draw : mean)),
      (k) =>
        `Completion ${k + 1} of ${completions.length}, at z = ${writtenVector(completions[k].z)}${app.rowInWords(completions[k].draw)}`,
    );
    app.particles = completions.map(({ z }) => z);
    find("completion-words").textContent = job.isDone
      ? `${effective.toFixed(0)} of ${job.numDraws} draws are effective in the last round.`
      : `Round ${round} of ${numRounds} …`;
    this.onParticles();
    this.predict(pool);
    if (!job.isDone) this.scheduleRound();
    else if (app.isFollowing) app.state.set({ z: this.prediction?.z ?? completions[0].z.slice() });
  }

  /** @param {import("./completion.js").Pool} pool */
  predict(pool) {
    if (!this.prediction) return;
    this.prediction.add(pool);
    this.app.prediction = this.prediction;
    this.onPrediction();
  }
}
