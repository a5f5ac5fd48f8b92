// The card with several completions of an input with missing parts or noise.

import { Completer } from "./completion.js";
import { find, writtenVector } from "./dom.js";
import { newSeed } from "./random.js";
import { Tiles } from "./tiles.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./completion.js").Completion} Completion */

export class Completions {
  /**
   * @param {App} app
   * @param {() => void} onParticles
   */
  constructor(app, onParticles) {
    this.app = app;
    this.onParticles = onParticles;
    /** @type {Completion[]} */
    this.found = [];
    /** @type {Completer | null} */
    this.job = null;
    this.isWaiting = false;
    this.tiles = new Tiles(find("completion-tiles"), app.painter, (k) => app.moveTo(this.found[k].z.slice()));
    find("complete-again").addEventListener("click", () => app.state.set({ completionSeed: newSeed() }));
    app.state.on(["x", "missing", "noise", "completionSeed"], () => this.begin());
  }

  get isNeeded() {
    const { x, missing, noise } = this.app.values;
    return x !== null && this.app.model.encoder !== null && (noise > 0 || missing.some(Boolean));
  }

  begin() {
    const { app } = this;
    const { x, missing, noise, completionSeed: seed } = app.values;
    const isNeeded = this.isNeeded;
    find("completions").classList.toggle("empty", !isNeeded);
    find("roll-block").hidden = isNeeded; // show one or the other
    this.job = isNeeded && x ? new Completer(app.model, x, missing, noise, { seed }) : null;
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
    const { completions, round, numRounds, effective } = job.step();
    this.found = completions;
    this.tiles.show(
      completions.map(({ mean }) => mean),
      (k) => `Completion ${k + 1} of ${completions.length}, at z = ${writtenVector(completions[k].z)}`,
    );
    app.particles = completions.map(({ z }) => z);
    find("completion-words").textContent = job.isDone
      ? `${effective.toFixed(0)} of ${job.numDraws} draws are effective in the last round.`
      : `Round ${round} of ${numRounds} …`;
    this.onParticles();
    if (!job.isDone) this.scheduleRound();
    else if (app.isFollowing) app.state.set({ z: completions[0].z.slice() });
  }
}
