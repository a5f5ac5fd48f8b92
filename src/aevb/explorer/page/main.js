// The entry point of the page: it creates all its parts.

import { App } from "./app.js";
import { readArrays } from "./arrays.js";
import { lowerBound } from "./bound.js";
import { Completer } from "./completion.js";
import { Completions } from "./completions.js";
import { addControls, showRest } from "./controls.js";
import { find, findCanvas, writtenVector } from "./dom.js";
import { addSwitch } from "./given.js";
import { addInput } from "./input.js";
import { Lens } from "./lens.js";
import { addLevels } from "./level_controls.js";
import { Meter } from "./meter.js";
import { logLikelihood, makeModel } from "./model.js";
import { Plane } from "./plane.js";
import { Prediction } from "./prediction.js";
import { Random } from "./random.js";
import { addColours, addSharing, readAddress } from "./share.js";
import { logGamma } from "./special.js";
import { Interpolation, Samples, Traversals } from "./walks.js";

/** @typedef {import("./app.js").Facts} Facts */

async function start() {
  /** @type {Facts} */
  const facts = JSON.parse(find("facts").textContent ?? "");
  introduce(facts);
  const app = new App(facts, await readArrays(facts.arrays, find("arrays").textContent ?? ""));
  readAddress(app);
  const { state } = app;
  const plane = new Plane(app);
  const drawPlane = () => plane.draw();
  addControls(app, plane);
  addSwitch(app);
  addLevels(app);
  // Everything that was decoded or encoded with another y.
  state.on(["y"], () => {
    const { y, ...others } = app.values;
    plane.redraw();
    if (y.length) state.set(others);
  });
  const output = findCanvas("output");
  output.style.aspectRatio = String(app.painter.aspect);

  /** @type {number | undefined} */
  let timer;
  // For screen readers, when z has stopped moving.
  const announceSoon = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => (find("status").textContent = plane.describe()), 600);
  };
  const showOutput = () => {
    const p = app.model.decode(app.values.z);
    const { isDraw, epsilonSeed } = app.values;
    if (!app.isTable) app.painter.paint(output, isDraw ? app.model.draw(p, new Random(epsilonSeed)) : app.model.mean(p));
    output.setAttribute("aria-label", `Decoder output at z = ${writtenVector(app.values.z)}`);
    find("z").textContent = `z = ${writtenVector(app.values.z)}`;
    announceSoon();
    showRest(app);
  };
  state.on(["z", "isDraw", "epsilonSeed"], showOutput);

  const input = addInput(app);
  const meter = new Meter(app);
  const lens = new Lens(app);
  const showPosterior = () => {
    const { x, missing } = app.values;
    const found = x && app.isEncodable ? lowerBound(app.model, x, app.epsilon(), missing) : null;
    app.q = found && x && app.model.encode(x, missing);
    app.draws = found && found.draws;
    meter.show(missing.every(Boolean) ? null : found);
    lens.draw();
  };
  state.on(["x", "missing", "epsilonSeed"], showPosterior);
  state.on(["level", "first", "second", "basis"], () => lens.draw());

  new Completions(app, drawPlane, () => input.show());
  new Interpolation(app);
  new Traversals(app);
  new Samples(app, drawPlane);
  state.on(
    ["z", "x", "missing", "view", "basis", "level", "first", "second", "from", "to", "isPathShown", "epsilonSeed"],
    drawPlane,
  );
  addSharing(app);
  addColours(() => {
    app.painter.updateColours();
    plane.redraw();
    state.set({ ...app.values });
  });

  showPosterior();
  input.show();
  state.set({ ...app.values });
  document.documentElement.dataset.ready = "yes";
  // For the console, and for tests: the same functions that the page uses.
  Object.assign(globalThis, {
    explorer: {
      app, readArrays, makeModel, lowerBound, logLikelihood, logGamma, Completer, Prediction, Random,
    },
  });
}

/** @param {Facts} facts */
function introduce({ title, name, version, model, data }) {
  find("title").textContent = title;
  const kinds = /** @type {Record<string, string>} */ ({
    bernoulli: "Bernoulli",
    gaussian: "Gaussian",
    "sigmoid-gaussian": "Gaussian, means in (0, 1)",
  });
  const widths = [model.levels[0], ...model.hidden].join(" – ") + (model.table ? "" : ` – ${model.data_dim}`);
  const numActive = data.active.filter(Boolean).length;
  const sizes = model.levels.length > 1 ? `levels of ${model.levels.join(" and ")}` : String(model.latent_dim);
  const variables = `${sizes} latent variable${model.latent_dim === 1 ? "" : "s"} (${numActive} active)`;
  find("lead").textContent =
    `${name ? `${name}: ` : ""}${variables}, decoder ${widths} (${model.activation}), ` +
    `${model.table ? "a family for each column" : `${kinds[model.likelihood]} p(x|z)`}, ` +
    `${model.prior ? "a learned mixture of Gaussians as p(z), " : ""}trained by ${model.learner_name}.`;
  find("version").textContent = version;
  find("circles-caption").hidden = Boolean(model.prior);
  find("weight-posterior").hidden = !model.has_weight_posterior;
  find("grey").hidden = !(model.likelihood === "bernoulli" && data.binarization === "grey");
  document.documentElement.classList.toggle("no-encoder", !model.has_encoder);
  document.documentElement.classList.toggle("is-table", !data.image_shape);
  document.documentElement.classList.toggle("is-mixed", model.table !== null);
  document.documentElement.classList.toggle("no-labels", !data.labels);
  document.documentElement.classList.toggle("no-given", !model.given);
}

start().catch((error) => {
  find("failure").hidden = false;
  find("failure").textContent =
    `The page could not start: ${error instanceof Error ? error.message : error}. It needs a browser from 2023 or later.`;
  throw error;
});
