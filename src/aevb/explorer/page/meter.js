// The bound of the input, split into its two terms.

import { find, written } from "./dom.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./bound.js").Bound} Bound */

export class Meter {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.bars = { reconstruction: find("bar-reconstruction"), kl: find("bar-kl"), typical: find("bar-typical") };
    find("bar-typical").hidden = app.data.typical_bound === null;
    find("typical-words").hidden = app.data.typical_bound === null;
    if (app.data.typical_bound !== null) find("typical").textContent = written(app.data.typical_bound, 1);
  }

  /** @param {Bound | null} found null if x has missing values */
  show(found) {
    find("bound-block").hidden = !found;
    if (!found) return;
    const { reconstruction, kl, klOfLevels, bound, stdError } = found;
    // That of a part of a row cannot be compared with those of whole rows.
    const { missing, source } = this.app.values;
    const typical = (missing.some(Boolean) && source === null ? null : this.app.data.typical_bound) ?? bound;
    find("bar-typical").hidden = find("typical-words").hidden = typical === bound;
    find("bound").textContent = written(bound, 1);
    find("reconstruction").textContent = written(reconstruction, 1);
    find("kl").textContent = written(kl, 1);
    find("kl-levels").hidden = klOfLevels.length === 1;
    const parts = klOfLevels.map((part, level) => `${written(part, 1)} for ${this.app.levels.title(level)}`);
    find("kl-levels").textContent = `= ${parts.join(" + ")}`;
    find("bound-error").textContent = `± ${written(stdError, 1)} from the 16 draws of z`;
    // One bar from 0 to the reconstruction, and one from there down by the KL divergence.
    const [low, high] = [Math.min(0, reconstruction, bound, typical), Math.max(0, reconstruction, typical)];
    const share = (/** @type {number} */ value) => (100 * (value - low)) / (high - low || 1);
    place(this.bars.reconstruction, share(Math.min(0, reconstruction)), share(Math.max(0, reconstruction)));
    place(this.bars.kl, share(bound), share(reconstruction));
    this.bars.typical.style.left = `${share(typical)}%`;
  }
}

/**
 * @param {HTMLElement} bar
 * @param {number} from
 * @param {number} to
 */
function place(bar, from, to) {
  bar.style.left = `${from}%`;
  bar.style.width = `${Math.max(to - from, 0.6)}%`;
}
