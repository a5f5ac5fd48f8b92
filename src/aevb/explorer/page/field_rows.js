// One line of the table of columns: a control in the user's units, and what the model expects.

import { make } from "./dom.js";

/** @typedef {import("./fields.js").Field} Field */
/** @typedef {import("./prediction.js").Expected} Expected */
/**
 * @typedef {object} Entry what a line shows
 * @property {boolean} isKnown
 * @property {number} u
 * @property {Expected | null} expected
 */
/** @typedef {{ show: (entry: Entry) => void }} FieldRow */
/** @typedef {{ set: (u: number) => void, release: () => void }} Actions of the reader */

const MOST_BARS = 8;

/**
 * @param {Field} field
 * @param {HTMLElement} place
 * @param {Actions} actions
 * @returns {FieldRow}
 */
export function addFieldRow(field, place, actions) {
  const keep = make("input", { type: "checkbox", "aria-label": `${field.name} is known` });
  keep.title = "known, or expected by the model";
  const name = make("label", { class: "keep" }, [
    keep,
    make("span", { class: "name", text: field.name, title: field.name }),
  ]);
  const said = make("p", { class: "said", id: `said-${field.i}` });
  const body = field.hasLevels
    ? field.levels.length === 2
      ? twoLevels(field, actions)
      : menu(field, actions)
    : number(field, actions);
  const node = make("div", { class: `field ${body.kind}`, role: "group", "aria-label": field.name }, [
    name,
    ...body.nodes,
    said,
  ]);
  place.append(node);
  /** @type {Entry | null} */
  let last = null;
  keep.addEventListener("change", () => {
    if (!keep.checked) return actions.release();
    actions.set(last?.expected ? field.guess(last.expected) : (last?.u ?? 0)); // what was expected is now known
  });
  return {
    show(entry) {
      last = entry;
      keep.checked = entry.isKnown;
      node.classList.toggle("known", entry.isKnown);
      said.textContent = words(field, entry);
      body.show(entry);
    },
  };
}

/**
 * A slider and a number or a date.
 * @param {Field} field
 * @param {Actions} actions
 */
function number(field, { set, release }) {
  const [wide, narrow, mark] = ["wide", "narrow", "mark"].map((name) => make("i", { class: `band ${name}` }));
  const slider = make("input", {
    type: "range",
    min: 0,
    max: 1,
    step: field.step,
    "aria-label": field.name,
    "aria-describedby": `said-${field.i}`,
  });
  const type = field.isDate ? (field.facts.has_time ? "datetime-local" : "date") : "number";
  const entry = make("input", {
    type,
    class: "entry",
    step: type === "number" ? "any" : type === "date" ? false : 1,
    "aria-label": `${field.name}: value`,
    "aria-describedby": `said-${field.i}`,
  });
  slider.addEventListener("input", () => set(field.atPosition(Number(slider.value))));
  entry.addEventListener("change", () => {
    const u = field.read(entry.value);
    if (Number.isNaN(u)) release();
    else set(u);
  });
  const place = (/** @type {HTMLElement} */ band, /** @type {number} */ low, /** @type {number} */ high) => {
    const [from, to] = [low, high].map((value) => 100 * field.position(value));
    band.style.left = `${from}%`;
    band.style.width = `${Math.max(to - from, 0.6)}%`;
  };
  return {
    kind: "of-numbers",
    nodes: [make("span", { class: "track" }, [wide, narrow, mark, slider]), entry],
    /** @param {Entry} shown */
    show({ isKnown, u, expected }) {
      for (const band of [wide, narrow, mark]) band.hidden = !expected;
      if (expected) {
        const [q05, q25, q50, q75, q95] = expected.quantiles.map((value) => field.expected(value));
        place(wide, q05, q95);
        place(narrow, q25, q75);
        mark.style.left = `${100 * field.position(q50)}%`;
      }
      const value = isKnown || !expected ? u : field.guess(expected);
      if (document.activeElement !== slider || !isKnown) slider.value = String(field.position(field.shown(value)));
      slider.setAttribute("aria-valuetext", isKnown ? field.text(u) : `not known; ${words(field, { isKnown, u, expected })}`);
      if (document.activeElement !== entry) entry.value = isKnown ? field.entry(u) : "";
      entry.placeholder = expected ? field.number(field.expected(expected.quantiles[2])) : "";
    },
  };
}

/**
 * A switch between two labels, filled by their probabilities.
 * @param {Field} field
 * @param {Actions} actions
 */
function twoLevels(field, { set }) {
  const options = field.levels.map((level, code) => {
    const radio = make("input", { type: "radio", name: `field-${field.i}`, value: code, "aria-label": level });
    radio.addEventListener("change", () => set(code));
    const [fill, share] = [make("i", { class: "fill" }), make("b", { class: "share" })];
    const text = make("span", { class: "text", text: level, title: level });
    return { radio, fill, share, node: make("label", {}, [radio, make("span", { class: "option" }, [fill, text, share])]) };
  });
  return {
    kind: "of-two",
    nodes: [
      make(
        "span",
        { class: "segments", role: "radiogroup", "aria-label": `${field.name}: value`, "aria-describedby": `said-${field.i}` },
        options.map(({ node }) => node),
      ),
    ],
    /** @param {Entry} shown */
    show({ isKnown, u, expected }) {
      options.forEach(({ radio, fill, share }, code) => {
        radio.checked = isKnown && u === code;
        const known = expected && !isKnown ? expected.shares[code] : null;
        fill.style.width = known === null ? "0" : `${100 * known}%`;
        share.textContent = known === null ? "" : percent(known);
      });
    },
  };
}

/**
 * A menu of labels, and bars of their probabilities.
 * @param {Field} field
 * @param {Actions} actions
 */
function menu(field, { set, release }) {
  const select = make(
    "select",
    { class: "menu", "aria-label": `${field.name}: value`, "aria-describedby": `said-${field.i}` },
    [
      make("option", { value: "", text: "not known" }),
      ...field.levels.map((level, code) => make("option", { value: code, text: level })),
    ],
  );
  select.addEventListener("change", () => (select.value === "" ? release() : set(Number(select.value))));
  // The menu does the same: for the mouse only.
  const bars = make("div", { class: "levels", "aria-hidden": "true" });
  return {
    kind: "of-levels",
    nodes: [select, bars],
    /** @param {Entry} shown */
    show({ isKnown, u, expected }) {
      select.value = isKnown ? String(u) : "";
      bars.hidden = isKnown || !expected;
      if (isKnown || !expected) return bars.replaceChildren();
      const { shown, rest } = mostProbable(expected.shares);
      const lines = shown.map((code) => {
        const line = bar(field.levels[code], expected.shares[code]);
        line.title = `Set to ${field.levels[code]}`;
        line.addEventListener("click", () => set(code));
        return line;
      });
      if (rest.count) lines.push(bar(`${rest.count} others`, rest.share, "others"));
      bars.replaceChildren(...lines);
    },
  };
}

/**
 * @param {string} label
 * @param {number} share
 * @param {string} kind
 */
export function bar(label, share, kind = "") {
  const fill = make("i", { class: "fill" });
  fill.style.width = `${100 * share}%`;
  return make("div", { class: `level ${kind}` }, [
    make("span", { class: "text", text: label }),
    make("span", { class: "room" }, [fill]),
    make("b", { class: "share", text: percent(share) }),
  ]);
}

/**
 * The levels to show: all in their order if they are few, otherwise the most probable ones.
 * @param {number[]} shares
 */
export function mostProbable(shares) {
  const codes = shares.map((_, code) => code);
  if (shares.length <= MOST_BARS) return { shown: codes, rest: { count: 0, share: 0 } };
  codes.sort((one, other) => shares[other] - shares[one]);
  const shown = codes.slice(0, MOST_BARS - 1);
  const share = 1 - shown.reduce((sum, code) => sum + shares[code], 0);
  return { shown, rest: { count: shares.length - shown.length, share: Math.max(share, 0) } };
}

/**
 * What is expected, in words.
 * @param {Field} field
 * @param {Entry} entry
 */
function words(field, { isKnown, u, expected }) {
  if (!expected) return "";
  const { quantiles, shares } = expected;
  const without = isKnown ? "without it: " : "";
  if (field.hasLevels) {
    const best = shares.indexOf(Math.max(...shares));
    if (!isKnown) return `${field.levels[best]}, ${percent(shares[best])}`;
    return `${without}${field.levels[best]} ${percent(shares[best])}${best === u ? "" : `, ${field.label(u)} ${percent(shares[u])}`}`;
  }
  const [q05, q25, q50, q75, q95] = quantiles.map((value) => field.number(field.expected(value)));
  return isKnown ? `${without}${q50}, 90 % ${q05} to ${q95}` : `50 % ${q25} to ${q75} · 90 % ${q05} to ${q95}`;
}

/** @param {number} share */
function percent(share) {
  const value = 100 * share;
  return value > 0 && value < 1 ? "< 1 %" : `${Math.round(value)} %`;
}
