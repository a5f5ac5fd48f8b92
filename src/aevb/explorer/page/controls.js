// The controls around the plane: axes, the coordinates that it does not show, labels, visibility and zoom.

import { find, findInput, make, written } from "./dom.js";
import { labelColour, labelName } from "./palette.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./plane.js").Plane} Plane */

/**
 * @param {App} app
 * @param {Plane} plane
 */
export function addControls(app, plane) {
  find("zoom-in").addEventListener("click", () => plane.zoom(1.6));
  find("zoom-out").addEventListener("click", () => plane.zoom(1 / 1.6));
  find("zoom-all").addEventListener("click", () => app.showAll());
  find("zoom-q").addEventListener("click", () => plane.zoomToPosterior());
  find("zoom-q").hidden = !app.model.encoder;
  addToggle(app, "show-data", "isDataShown");
  addToggle(app, "show-manifold", "isManifoldShown");
  addToggle(app, "show-draw", "isDraw");
  addLegend(app);
  if (app.J > 2 || app.levels.last > 0) addAxes(app);
}

/**
 * @param {App} app
 * @param {string} id
 * @param {"isDataShown" | "isManifoldShown" | "isDraw"} key
 */
function addToggle(app, id, key) {
  const box = findInput(id);
  box.addEventListener("change", () => app.state.set({ [key]: box.checked }));
  const show = () => (box.checked = app.values[key]);
  app.state.on([key], show);
  show();
}

/** @param {App} app */
function addLegend(app) {
  const place = find("legend");
  const fill = () => {
    place.replaceChildren(...(app.isTable ? [colourMenu(app)] : []));
    fillLegend(app, place);
  };
  const press = () =>
    place
      .querySelectorAll(".chip")
      .forEach((chip, number) => chip.setAttribute("aria-pressed", String(app.values.label === number)));
  app.state.on(["colour"], fill);
  app.state.on(["label", "colour"], press);
  fill();
  press();
}

/**
 * A menu for the column that colours the plane.
 * @param {App} app
 */
function colourMenu(app) {
  const columns = app.fields.map(({ name }, i) => ({ name, i })).filter(({ i }) => app.canColour(i));
  const first = app.data.labels ? "labels" : "none";
  const select = make("select", { "aria-label": "Colour by" }, [
    make("option", { value: -1, text: first }),
    ...columns.map(({ name, i }) => make("option", { value: i, text: name })),
  ]);
  select.value = String(app.values.colour);
  select.addEventListener("change", () => app.state.set({ colour: Number(select.value), label: -1 }));
  return make("label", { class: "colour" }, [make("span", { text: "colour" }), select]);
}

/**
 * @param {App} app
 * @param {HTMLElement} place
 */
function fillLegend(app, place) {
  const { labels } = app.colouring();
  if (labels?.kind === "quantity") {
    const [low, high] = labels.range;
    const swatches = Array.from({ length: 24 }, (_, k) => {
      const swatch = make("i", { class: "ramp" });
      swatch.style.background = labelColour({ ...labels, scale: undefined }, low + ((high - low) * k) / 23);
      return swatch;
    });
    place.append(
      make("span", { text: labelName(labels, low) }),
      make("span", { class: "ramps" }, swatches),
      make("span", { text: labelName(labels, high) }),
    );
  }
  if (labels?.kind !== "classes") return;
  const chips = labels.names.map((name, number) => {
    const dot = make("i", { class: "dot" });
    dot.style.background = labelColour(labels, number);
    const chip = make("button", { type: "button", class: "chip", "aria-pressed": "false", title: "highlight these" }, [
      dot,
      make("span", { text: name }),
    ]);
    chip.addEventListener("click", () => app.state.set({ label: app.values.label === number ? -1 : number }));
    return chip;
  });
  place.append(...chips);
}

/** @param {App} app */
function addAxes(app) {
  const { state } = app;
  find("axes").hidden = false;
  const [kind, across, up] = ["basis", "first", "second"].map((id) => /** @type {HTMLSelectElement} */ (find(id)));
  const place = find("rest");
  place.hidden = false;
  const fill = () => {
    kind.value = app.values.basis;
    for (const [select, key] of /** @type {[HTMLSelectElement, "first" | "second"][]} */ ([
      [across, "first"],
      [up, "second"],
    ])) {
      select.replaceChildren(...app.basis.names.map((name, k) => make("option", { value: k, text: name })));
      select.value = String(app.values[key]);
    }
    addSliders(app, place);
  };
  kind.addEventListener("change", () => {
    state.set({ basis: kind.value === "pca" ? "pca" : "axes", first: 0, second: Math.min(1, app.numShown - 1) });
    app.showAll();
  });
  across.addEventListener("change", () => choose("first", "second", Number(across.value)));
  up.addEventListener("change", () => choose("second", "first", Number(up.value)));
  /**
   * The two axes always differ: if necessary, they are swapped.
   * @param {"first" | "second"} key
   * @param {"first" | "second"} other
   * @param {number} value
   */
  function choose(key, other, value) {
    state.set(app.values[other] === value ? { [key]: value, [other]: app.values[key] } : { [key]: value });
    app.showAll();
  }
  state.on(["basis", "level", "first", "second"], fill);
  fill();
}

/**
 * One slider for each coordinate that the plane does not show.
 * @param {App} app
 * @param {HTMLElement} place
 */
function addSliders(app, place) {
  const { first, second } = app.values;
  place.replaceChildren();
  /** @type {(() => void)[]} */
  const shows = [];
  app.basis.names.forEach((name, k) => {
    if (k === first || k === second) return;
    const slider = make("input", { type: "range", min: -4, max: 4, step: 0.02, "aria-label": name });
    const number = make("span", { class: "number" });
    place.append(make("label", { class: "slider" }, [make("span", { class: "name", text: name }), slider, number]));
    slider.addEventListener("input", () => {
      const c = app.basis.coordinates(app.values.z);
      c[k] = Number(slider.value);
      app.moveTo(app.basis.latent(c));
    });
    shows.push(() => {
      const value = app.basis.coordinates(app.values.z)[k];
      if (document.activeElement !== slider) slider.value = String(value);
      number.textContent = written(value);
    });
  });
  const show = () => shows.forEach((action) => action());
  sliderShows.set(app, show);
  show();
}

/** @type {WeakMap<App, () => void>} */
const sliderShows = new WeakMap();

/** @param {App} app */
export function showRest(app) {
  sliderShows.get(app)?.();
}
