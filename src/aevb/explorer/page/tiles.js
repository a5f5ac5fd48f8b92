// Rows of small pictures that can be clicked.

import { make } from "./dom.js";

/** @typedef {import("./paint.js").Painter} Painter */

export class Tiles {
  /**
   * @param {HTMLElement} place
   * @param {Painter} painter
   * @param {(number: number) => void} onPress
   */
  constructor(place, painter, onPress) {
    this.place = place;
    this.painter = painter;
    this.onPress = onPress;
    /** @type {HTMLButtonElement[]} */
    this.buttons = [];
  }

  /**
   * @param {Float32Array[]} rows
   * @param {(number: number) => string} describe
   * @param {number} [current] the tile that is marked
   */
  show(rows, describe, current = -1) {
    while (this.buttons.length > rows.length) this.buttons.pop()?.remove();
    while (this.buttons.length < rows.length) this.add(this.buttons.length);
    rows.forEach((x, number) => {
      const button = this.buttons[number];
      button.setAttribute("aria-label", describe(number));
      button.title = describe(number);
      button.classList.toggle("current", number === current);
      this.painter.paint(/** @type {HTMLCanvasElement} */ (button.firstElementChild), x);
    });
  }

  /** @param {number} number */
  add(number) {
    const button = make("button", { type: "button", class: "tile" }, [make("canvas", { "aria-hidden": "true" })]);
    button.addEventListener("click", () => this.onPress(number));
    this.place.append(button);
    this.buttons.push(button);
  }
}
