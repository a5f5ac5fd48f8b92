// Rows of a table as text, each of which can be chosen.

import { make } from "./dom.js";
import { Tiles } from "./tiles.js";

/** @typedef {import("./app.js").App} App */

const MOST_COLUMNS = 100;

export class Rows {
  /**
   * @param {HTMLElement} place
   * @param {App} app
   * @param {(number: number) => void} onPress
   */
  constructor(place, app, onPress) {
    this.place = place;
    this.app = app;
    this.onPress = onPress;
    place.classList.replace("tiles", "rows");
    place.tabIndex = 0; // it scrolls
    this.body = make("tbody");
    /** Which columns are aligned at the right. */
    this.classes = app.fields.map((field) => (field.hasLevels || field.isDate ? "" : "right"));
    const names = app.fields.map(({ name }, i) =>
      make("th", { scope: "col", class: this.classes[i], text: name, title: name }),
    );
    place.append(make("table", {}, [make("thead", {}, [make("tr", {}, [make("td"), ...names])]), this.body]));
  }

  /**
   * @param {Float32Array[]} rows
   * @param {(number: number) => string} describe
   */
  show(rows, describe) {
    this.body.replaceChildren(
      ...rows.map((x, number) => {
        const button = make("button", { type: "button", class: "row", text: "z", "aria-label": describe(number) });
        button.title = "Go to its z on the plane";
        button.addEventListener("click", () => this.onPress(number));
        const gaps = new Set(this.app.fields.map(({ facts }, j) => (x[j] === 1 ? facts.about : undefined)));
        const cells = this.app.fields.map((field, i) =>
          make("td", { class: this.classes[i], text: gaps.has(i) ? "missing" : field.cell(x[i]) }),
        );
        return make("tr", {}, [make("td", {}, [button]), ...cells]);
      }),
    );
  }
}

/**
 * What shows several x: rows of a table as text, or pictures.
 * @param {HTMLElement} place
 * @param {App} app
 * @param {(number: number) => void} onPress
 */
export function rowsOrTiles(place, app, onPress) {
  const isText = app.isTable && app.D <= MOST_COLUMNS;
  return isText ? new Rows(place, app, onPress) : new Tiles(place, app.painter, onPress);
}
