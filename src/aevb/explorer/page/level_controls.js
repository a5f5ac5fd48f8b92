// A hierarchy: which level the plane shows, what the levels below it do, and pictures with one level held.

import { find, make } from "./dom.js";
import { newSeed, Random } from "./random.js";
import { Tiles } from "./tiles.js";
import { decoded } from "./walks.js";

/** @typedef {import("./app.js").App} App */

const NUM_TILES = 13; // the levels below at their means, and draws of them

/**
 * Add the choice of a level, if there are several.
 * @param {App} app
 */
export function addLevels(app) {
  const { levels, state } = app;
  if (levels.last === 0) return;
  find("levels").hidden = find("held").hidden = false;
  const top = levels.last;
  const choices = levels.sizes.map((size, level) => {
    const where = level === top ? "top" : level === 0 ? "next to the data" : "";
    const text = [`${size} variable${size === 1 ? "" : "s"}`, where].filter(Boolean).join(", ");
    const button = make("button", { type: "button", class: "chip", "aria-pressed": "false" }, [
      make("em", { text: levels.title(level) }),
      make("span", { text }),
    ]);
    button.addEventListener("click", () => app.showLevel(level));
    return button;
  });
  find("level-choices").replaceChildren(...choices.slice().reverse());
  const [means, draws, again] = ["below-means", "below-draws", "below-again"].map(find);
  means.addEventListener("click", () => settle(app, { isBelowDrawn: false }));
  for (const button of [draws, again])
    button.addEventListener("click", () => settle(app, { isBelowDrawn: true, belowSeed: newSeed() }));
  const show = () => {
    const { level, isBelowDrawn } = app.values;
    choices.forEach((button, k) => button.setAttribute("aria-pressed", String(k === level)));
    find("below").hidden = level === 0;
    find("below-names").textContent = levels.sizes.slice(0, level).map((_, k) => levels.title(k)).join(", ");
    means.setAttribute("aria-pressed", String(!isBelowDrawn));
    draws.setAttribute("aria-pressed", String(isBelowDrawn));
    again.hidden = !isBelowDrawn;
    find("circles-caption").textContent = priorInWords(app);
  };
  state.on(["level", "isBelowDrawn"], show);
  show();
  new Held(app);
}

/**
 * Let the levels below the one that is shown be at their means, or draw them.
 * @param {App} app
 * @param {Partial<import("./state.js").Values>} patch
 */
function settle(app, patch) {
  app.state.set(patch);
  app.moveTo(app.values.z);
}

/** @param {App} app */
function priorInWords({ levels, values: { level } }) {
  const above = level === levels.last ? "" : `|${levels.title(level + 1)}`;
  if (!above && !levels.top.isStandard) return "";
  const where = above ? ` at the current ${levels.title(level + 1)}` : "";
  const units = above ? " Coordinates are in standard deviations of p(z)." : "";
  return `Dashed: 1, 2 and 3 standard deviations of p(${levels.title(level)}${above})${where}.${units}`;
}

/** For each level but the lowest a row of pictures: it is held at the current z, and the levels below it are drawn. */
class Held {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.seed = 1;
    /** @type {number | undefined} */
    this.timer = undefined;
    const { levels } = app;
    this.rows = levels.sizes.slice(1).map((_, below) => {
      const level = below + 1;
      const name = `${levels.title(level)} held`;
      const tiles = make("div", { class: "tiles strip", role: "group", "aria-label": name });
      find("held-rows").prepend(
        make("div", { class: "traversal-row" }, [make("span", { class: "traversal-name", text: name }), tiles]),
      );
      return { level, tiles: new Tiles(tiles, app.painter, (k) => this.go(level, k)), z: app.values.z };
    });
    find("held-again").addEventListener("click", () => {
      this.seed = newSeed();
      this.show();
    });
    app.state.on(["z"], () => this.scheduleShow());
  }

  /**
   * @param {number} level
   * @param {number} k
   */
  go(level, k) {
    const { app } = this;
    const { z } = this.rows[level - 1];
    if (app.values.level !== level) app.showLevel(level);
    app.jumpTo(z.slice(k * app.J, (k + 1) * app.J));
  }

  /** With a delay: while z is being dragged, only the output follows immediately. */
  scheduleShow() {
    find("held-rows").setAttribute("aria-busy", "true");
    this.timer ??= window.setTimeout(() => {
      this.timer = undefined;
      this.show();
      find("held-rows").setAttribute("aria-busy", "false");
    }, 120);
  }

  show() {
    const { app } = this;
    const repeated = new Float32Array(NUM_TILES * app.J);
    for (let s = 0; s < NUM_TILES; s++) repeated.set(app.values.z, s * app.J);
    const noise = new Random(this.seed).normals(NUM_TILES * app.J).fill(0, 0, app.J); // the first at the means
    for (const row of this.rows) {
      row.z = app.levels.descend(repeated, row.level, noise);
      row.tiles.show(decoded(app, row.z), (k) => (k ? `Draw ${k}` : "The levels below at their means"));
    }
  }
}
