// Draws one x: an image, or a row of a table as bars or as a line.

import { colour, context, fitted } from "./dom.js";
import { COLOURS } from "./palette.js";

/**
 * @typedef {object} Painter
 * @property {boolean} isImage
 * @property {number} aspect width divided by height
 * @property {(canvas: HTMLCanvasElement, x: Float32Array, missing?: Uint8Array | null) => void} paint
 * @property {() => void} updateColours to be called after a change of colours
 */

/**
 * @param {import("./app.js").DataFacts} facts
 * @param {number[]} offset (D,)
 * @param {boolean} inUnitInterval
 * @param {{ means: Float32Array, stds: Float32Array }} columns
 * @returns {Painter}
 */
export function makePainter(facts, offset, inUnitInterval, columns) {
  if (!facts.image_shape) return tablePainter(columns, facts.fields ?? []);
  return imagePainter(facts.image_shape, offset, inUnitInterval ? [0, 1] : facts.range, facts.light_on_dark);
}

/**
 * @param {number[]} shape (height, width), or (height, width, channels): three are colours
 * @param {number[]} offset (D,)
 * @param {[number, number]} range in the units of the data
 * @param {boolean} lightOnDark
 * @returns {Painter}
 */
function imagePainter([height, width, channels = 1], offset, [low, high], lightOnDark) {
  let ramp = new Uint32Array(256);
  let hidden = 0;
  const updateColours = () => {
    const ends = lightOnDark
      ? [
          [8, 8, 8],
          [250, 250, 250],
        ]
      : [channelsOf(colour("paper-low")), channelsOf(colour("paper-high"))];
    ramp = Uint32Array.from({ length: 256 }, (_, level) =>
      packed(ends[0].map((from, k) => from + (level / 255) * (ends[1][k] - from))),
    );
    hidden = packed(channelsOf(colour("hidden")));
  };
  updateColours();
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  return {
    isImage: true,
    aspect: width / height,
    updateColours,
    paint(canvas, x, missing = null) {
      if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
      const levelAt = (/** @type {number} */ i) => {
        const level = Math.round((255 * (x[i] + offset[i] - low)) / (high - low));
        return level < 0 ? 0 : level > 255 ? 255 : level;
      };
      for (let i = 0; i < pixels.length; i++) {
        const first = i * channels;
        const shown = channels === 3 ? packed([0, 1, 2].map((c) => levelAt(first + c))) : ramp[levelAt(first)];
        pixels[i] = missing && missing[first] ? hidden : shown;
      }
      context(canvas).putImageData(image, 0, 0);
    },
  };
}

const MOST_BARS = 60;

/**
 * Numbers as bars above or below their means, in standard deviations; labels as blocks of one colour each.
 * @param {{ means: Float32Array, stds: Float32Array }} columns
 * @param {import("./fields.js").FieldFacts[]} fields
 * @returns {Painter}
 */
function tablePainter({ means, stds }, fields) {
  let [above, below, rule] = ["", "", ""];
  const updateColours = () => ([above, below, rule] = [colour("accent"), colour("warm"), colour("rule")]);
  updateColours();
  return {
    isImage: false,
    aspect: 1.35,
    updateColours,
    paint(canvas, x, missing = null) {
      const width = canvas.clientWidth || Number(canvas.dataset.width) || 64;
      const height = canvas.clientHeight || Number(canvas.dataset.height) || 48;
      const drawing = fitted(canvas, width, height);
      const D = means.length;
      const middle = height / 2;
      const up = (/** @type {number} */ i) => {
        const t = (x[i] - means[i]) / (stds[i] || 1);
        return (Math.min(Math.max(t, -3), 3) / 3) * (middle - 2);
      };
      drawing.fillStyle = rule;
      drawing.fillRect(2, middle - 0.5, width - 4, 1);
      const step = (width - 4) / D;
      if (D <= MOST_BARS) {
        for (let i = 0; i < D; i++) {
          if (missing && missing[i]) continue;
          if (fields[i]?.levels) {
            drawing.fillStyle = COLOURS[Math.round(x[i]) % COLOURS.length];
            drawing.fillRect(2 + i * step + step * 0.12, 0.22 * height, step * 0.76, 0.56 * height);
            continue;
          }
          const h = up(i);
          drawing.fillStyle = h >= 0 ? above : below;
          drawing.fillRect(
            2 + i * step + step * 0.12,
            middle - Math.max(h, 0),
            step * 0.76,
            Math.max(Math.abs(h), 0.8),
          );
        }
        return;
      }
      drawing.strokeStyle = above;
      drawing.lineWidth = 1.4;
      drawing.beginPath();
      for (let i = 0; i < D; i++) {
        if (missing && missing[i]) continue;
        drawing.lineTo(2 + (i + 0.5) * step, middle - up(i));
      }
      drawing.stroke();
    },
  };
}

/** @param {string} hex such as #14171b */
function channelsOf(hex) {
  return [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
}

/** @param {number[]} rgb */
function packed([r, g, b]) {
  return ((255 << 24) | (Math.round(b) << 16) | (Math.round(g) << 8) | Math.round(r)) >>> 0;
}
