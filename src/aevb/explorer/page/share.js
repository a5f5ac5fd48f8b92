// Sharing the state through the URL; and light or dark colours.

import { find, findInput, clearColours } from "./dom.js";
import { fromHash, toHash } from "./state.js";

/** @typedef {import("./app.js").App} App */

/** @param {App} app */
export function addSharing(app) {
  const dialog = /** @type {HTMLDialogElement} */ (find("share-dialog"));
  const field = findInput("share-link");
  find("share").addEventListener("click", async () => {
    history.replaceState(null, "", `#${toHash(app.values)}`);
    field.value = location.href;
    find("share-words").textContent = "This link opens the page in its current state:";
    dialog.showModal();
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      find("share-words").textContent = "Copied. This link opens the page in its current state:";
    } catch {
      // Not allowed here: the link can be copied from the field.
    }
  });
  window.addEventListener("hashchange", () => {
    readAddress(app);
    app.state.set({ ...app.values });
  });
}

/**
 * Apply the state in the URL.
 * @param {App} app
 */
export function readAddress(app) {
  const sizes = {
    latentDim: app.J,
    levelSizes: app.levels.sizes,
    dataDim: app.D,
    numPoints: app.numPoints,
    givenDim: app.given?.size ?? 0,
  };
  const found = fromHash(location.hash, sizes);
  if (!Object.keys(found).length) return;
  if (typeof found.source === "number") found.x = app.point(found.source);
  if (found.x && !found.missing)
    found.missing = typeof found.source === "number" ? app.gaps(found.source) : new Uint8Array(app.D);
  if (found.x) found.x = found.x.map((value, i) => app.fields[i]?.valid(value) ?? value);
  if (found.colour !== undefined && !app.canColour(found.colour)) delete found.colour;
  if (found.x && !found.noise) found.noise = 0;
  const { labels } = app.colouring(found.colour ?? app.values.colour);
  if (found.label !== undefined && !(labels?.kind === "classes" && found.label < labels.names.length))
    delete found.label;
  if (app.given) {
    if (found.y) found.y = app.given.valid(found.y);
    else if (typeof found.source === "number") found.y = app.pointY(found.source);
    app.given.use(found.y ?? app.values.y);
  }
  Object.assign(app.values, { isMoved: true }, found);
}

/** @param {() => void} onChange */
export function addColours(onChange) {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = find("theme");
  const change = () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
    button.setAttribute("aria-pressed", String(isDark));
    clearColours();
    onChange();
  };
  button.addEventListener("click", () => {
    root.dataset.theme = button.getAttribute("aria-pressed") === "true" ? "light" : "dark";
    change();
  });
  system.addEventListener("change", change);
  button.setAttribute("aria-pressed", String(system.matches));
}
