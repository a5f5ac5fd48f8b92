// Changing the input x, for any kind of data: pick, clear, add noise, open a file.

import { find, findInput, written } from "./dom.js";
import { Pad } from "./pad.js";
import { newSeed, Random } from "./random.js";
import { Table } from "./table.js";

/** @typedef {import("./app.js").App} App */

/**
 * @param {App} app
 * @returns {{ show(): void }}
 */
export function addInput(app) {
  const { image_shape: shape } = app.data;
  const pad = shape ? new Pad(app, shape) : null;
  const input = pad ?? new Table(app);
  find("pad").hidden = !pad;
  find("draw-row").hidden = Boolean(pad);
  find("pick").textContent = pad ? "Random datapoint" : "Load a real row";
  find("center").hidden = find("invert").hidden = find("tools").hidden = !pad;
  find("pick").addEventListener("click", () => app.pick(Math.floor(Math.random() * app.numPoints)));
  find("clear").addEventListener("click", () => input.clear());
  find("center").addEventListener("click", () => pad?.center());
  find("invert").addEventListener("click", () => pad?.invert());
  for (const radio of /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll("input[name=tool]"))) {
    radio.addEventListener("change", () => pad && (pad.tool = /** @type {import("./pad.js").Tool} */ (radio.value)));
  }
  addNoise(app);
  addFiles(app, input);
  return input;
}

/** @param {App} app */
function addNoise(app) {
  const level = findInput("noise-level");
  const unit = app.model.isBernoulli
    ? " of the pixels replaced"
    : app.model.units
      ? " standard deviations added"
      : " added";
  const show = () => {
    const value = Number(level.value);
    find("noise-value").textContent = app.model.isBernoulli ? `${Math.round(100 * value)} %` : written(value);
    level.setAttribute("aria-valuetext", `${find("noise-value").textContent}${unit}`);
  };
  level.addEventListener("input", show);
  show();
  /** @type {Float32Array | null} */
  let clean = null;
  find("add-noise").addEventListener("click", () => {
    const { x, noise } = app.values;
    if (!x) return;
    if (!noise || !clean) clean = x;
    const value = Number(level.value);
    app.setInput({ x: app.model.corrupt(clean, value, new Random(newSeed())), source: null, noise: value });
  });
  find("undo").addEventListener("click", () => {
    const { noise, x } = app.values;
    app.setInput({ x: noise && clean ? clean : x, noise: 0, missing: new Uint8Array(app.D) });
  });
  app.state.on(["noise", "missing"], () => {
    const { noise, missing } = app.values;
    find("undo").toggleAttribute("disabled", !missing.some(Boolean) && !(noise && clean));
  });
}

/**
 * @param {App} app
 * @param {Pad | Table} input
 */
function addFiles(app, input) {
  const field = findInput("file");
  const card = find("pad-card");
  field.accept = app.data.image_shape ? "image/*" : ".csv,.txt,.tsv";
  const read = async (/** @type {File | undefined} */ file) => {
    if (!file) return;
    try {
      find("file-words").textContent = (await input.read(file)) ?? "";
    } catch (error) {
      const reason =
        error instanceof Error && !app.data.image_shape ? error.message : "the browser cannot read it as a picture";
      find("file-words").textContent = `${file.name} cannot be used: ${reason}.`;
    }
    field.value = "";
  };
  find("open").addEventListener("click", () => field.click());
  field.addEventListener("change", () => read(field.files?.[0]));
  card.addEventListener("dragover", (event) => {
    event.preventDefault();
    card.classList.add("dropping");
  });
  card.addEventListener("dragleave", () => card.classList.remove("dropping"));
  card.addEventListener("drop", (event) => {
    event.preventDefault();
    card.classList.remove("dropping");
    read(event.dataTransfer?.files[0]);
  });
}
