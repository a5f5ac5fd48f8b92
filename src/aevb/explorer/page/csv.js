// The first rows of a .csv file as text.

const MISSING = new Set(["", "na", "n/a", "nan", "null", "none", "?", "-"]);

/**
 * The cells of the first lines. Cells in quotation marks may contain separators, line breaks and doubled marks.
 * @param {string} text
 * @param {number} most lines
 * @returns {string[][]}
 */
export function readCells(text, most = 2) {
  const separator = [",", ";", "\t"].reduce((best, one) => (count(text, one) > count(text, best) ? one : best));
  /** @type {string[][]} */
  const lines = [];
  let cells = [""];
  let isQuoted = false;
  const end = () => {
    if (cells.some((cell) => cell.trim())) lines.push(cells.map((cell) => cell.trim()));
    cells = [""];
  };
  for (let k = 0; k < text.length && lines.length < most; k++) {
    const last = cells.length - 1;
    if (text[k] === '"' && isQuoted && text[k + 1] === '"') cells[last] += text[k++];
    else if (text[k] === '"') isQuoted = !isQuoted;
    else if (isQuoted) cells[last] += text[k];
    else if (text[k] === separator) cells.push("");
    else if (text[k] === "\n") end();
    else if (text[k] !== "\r") cells[last] += text[k];
  }
  if (lines.length < most) end();
  return lines;
}

/** @param {string} cell */
export function isGap(cell) {
  return MISSING.has(cell.trim().toLowerCase());
}

/**
 * @param {string} text
 * @param {string} separator
 */
function count(text, separator) {
  return (text.split(/\r?\n/, 1)[0] ?? "").split(separator).length;
}
