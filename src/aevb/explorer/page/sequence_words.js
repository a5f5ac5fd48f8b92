// What the page of sequences says about a step.

/** @typedef {import("./sequences.js").View} View */
/** @typedef {import("./sequences.js").Panel} Panel */

export const MISSING = 255; // an entry of a roll that was not observed
const MOST = 3; // labels that are named

/** @param {number} value */
export const short = (value) => String(Number(value.toPrecision(4))).replace("-", "−");

/** @param {number} value of 0 to 255 */
const percent = (value) => `${Math.round((100 * value) / 255)} %`;

export const said = {
  /**
   * When a step is.
   * @param {View} view
   * @param {number} step
   * @param {string} unit - of times; "step" if they are regular
   */
  time(view, step, unit) {
    const { length, times, positions } = view;
    if (step >= length) {
      const after = step - length + 1;
      return `forecast, ${after} ${unit}${after === 1 ? "" : "s"} after the end`;
    }
    const at = times ? times[step] : unit === "step" ? "" : short(positions[step] - positions[0]);
    return `step ${step + 1} of ${length}${at ? `, ${at}` : ""}`;
  },

  /**
   * What was observed at a step, and what the model expects.
   * @param {View} view
   * @param {Panel} panel
   * @param {number} step
   * @param {number[]} levels
   */
  panel(view, panel, step, levels) {
    return panel.rows.length ? roll(view, panel, step) : line(view, panel, step, levels);
  },
};

/**
 * @param {View} view
 * @param {Panel} panel
 * @param {number} step
 * @param {number[]} levels
 */
function line(view, { observed, expected }, step, levels) {
  const count = 2 * levels.length + 1;
  const at = (/** @type {number} */ place) => short(expected[step * count + place]);
  const place = 1; // the second widest band
  const level = levels[levels.length - 1 - place];
  const known = step >= view.length ? "" : Number.isNaN(observed[step]) ? "missing; " : `observed ${short(observed[step])}; `;
  return `${known}median ${at(levels.length)}, ${Math.round(100 * level)} % from ${at(place)} to ${at(count - 1 - place)}`;
}

/**
 * @param {View} view
 * @param {Panel} panel
 * @param {number} step
 */
function roll(view, { rows, observed, expected }, step) {
  const R = rows.length;
  const numbers = rows.map((_, row) => row);
  const share = (/** @type {number} */ row) => expected[step * R + row];
  const likely = numbers.sort((a, b) => share(b) - share(a)).slice(0, MOST);
  const words = `expected ${likely.map((row) => `${rows[row]} ${percent(share(row))}`).join(", ")}`;
  if (step >= view.length) return words;
  const now = observed.subarray(step * R, (step + 1) * R);
  if (now.every((value) => value === MISSING)) return `missing; ${words}`;
  const on = rows.filter((_, row) => now[row] === 1);
  const more = on.length > 2 * MOST ? ` and ${on.length - 2 * MOST} more` : "";
  return `observed ${on.slice(0, 2 * MOST).join(", ") || "none"}${more}; ${words}`;
}
