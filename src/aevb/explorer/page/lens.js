// An animation of z = mu + sigma * epsilon: noise on the left becomes q(z|x) on the right.

import { colour, find, findCanvas, fitted, prefersReducedMotion } from "./dom.js";
import { NUM_EPSILON } from "./app.js";
import { posteriorDraws } from "./bound.js";
import { newSeed } from "./random.js";

/** @typedef {import("./app.js").App} App */

const MILLISECONDS = 1100;
const REACH = 2.9; // visible standard deviations

export class Lens {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.canvas = findCanvas("lens");
    this.began = -Infinity;
    find("roll").addEventListener("click", () => this.roll());
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  /** Draw epsilon again; z moves to the first draw. */
  roll() {
    const { app } = this;
    app.state.set({ epsilonSeed: newSeed() });
    const { x, missing } = app.values;
    if (app.q && x) app.jumpTo(posteriorDraws(app.model, x, app.epsilon().subarray(0, app.J), missing).z);
    this.animate();
  }

  animate() {
    if (prefersReducedMotion()) return this.draw();
    this.began = performance.now();
    const next = () => {
      this.draw();
      if (performance.now() < this.began + MILLISECONDS + 50) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }

  draw() {
    const { app, canvas } = this;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (width < 120 || height < 60) return; // not laid out yet
    const drawing = fitted(canvas, width, height);
    const half = Math.min(height / 2 - 12, width / 4 - 18);
    const [left, right, middle] = [half + 10, width - half - 10, height / 2 + 6];
    this.rings(drawing, left, middle, half / REACH, half / REACH, colour("faint"));
    drawing.font = "italic 13px Georgia, serif";
    drawing.fillStyle = colour("faint");
    drawing.fillText("ε ~ N(0, I)", 4, 13);
    if (!app.q) return;
    const { first, second } = app.values;
    const { l11, l21, l22 } = app.basis.factor(app.q.sigma, first, second);
    const unit = half / REACH / Math.max(l11, Math.hypot(l21, l22), 1e-9);
    this.ellipses(drawing, right, middle, unit, { l11, l21, l22 });
    drawing.fillStyle = colour("warm");
    drawing.textAlign = "right";
    drawing.fillText("z = μ + σ ⊙ ε ~ q(z|x)", width - 4, 13);
    drawing.textAlign = "left";
    drawing.beginPath();
    const [tail, tip] = [left + half + 14, right - half - 14];
    if (tip - tail > 12) {
      drawing.moveTo(tail, middle);
      drawing.lineTo(tip, middle);
      drawing.moveTo(tip - 6, middle - 4);
      drawing.lineTo(tip, middle);
      drawing.lineTo(tip - 6, middle + 4);
      drawing.strokeStyle = colour("faint");
      drawing.lineWidth = 1.2;
      drawing.stroke();
    }
    this.dots(drawing, { left, right, middle, half, unit });
  }

  /**
   * @param {CanvasRenderingContext2D} drawing
   * @param {Record<"left" | "right" | "middle" | "half" | "unit", number>} measures
   */
  dots(drawing, { left, right, middle, half, unit }) {
    const { app } = this;
    if (!app.q || !app.draws) return;
    const { first, second } = app.values;
    const center = app.basis.coordinates(app.q.mu);
    const time = (performance.now() - this.began) / MILLISECONDS;
    for (let l = NUM_EPSILON - 1; l >= 0; l--) {
      // Each draw has its own mean and scale: in a hierarchy they depend on the level drawn before.
      const [z, mu, sigma] = [app.draws.z, app.draws.mu, app.draws.sigma].map((values) =>
        values.subarray(l * app.J, (l + 1) * app.J),
      );
      const [c, own] = [app.basis.coordinates(z), app.basis.coordinates(mu)];
      const { l11, l21, l22 } = app.basis.factor(sigma, first, second);
      const [a, b] = [c[first] - center[first], second === first ? 0 : c[second] - center[second]];
      const u = l11 ? (c[first] - own[first]) / l11 : 0;
      const v = l22 && second !== first ? (c[second] - own[second] - l21 * u) / l22 : 0; // the epsilon of this draw
      const [x0, y0] = [left + (u * half) / REACH, middle - (v * half) / REACH];
      const [x1, y1] = [right + a * unit, middle - b * unit];
      const t = ease(Math.min(Math.max(1.25 * time - 0.25 * (l / NUM_EPSILON), 0), 1));
      this.dot(drawing, x0, y0, 2.2, colour("faint"), 0.55);
      this.dot(
        drawing,
        x0 + t * (x1 - x0),
        y0 + t * (y1 - y0),
        l === 0 ? 5 : 3,
        l === 0 ? colour("accent") : colour("warm"),
        1,
      );
    }
  }

  /**
   * @param {CanvasRenderingContext2D} drawing
   * @param {number} x
   * @param {number} y
   * @param {number} radius
   * @param {string} tint
   * @param {number} alpha
   */
  dot(drawing, x, y, radius, tint, alpha) {
    drawing.globalAlpha = alpha;
    drawing.beginPath();
    drawing.arc(x, y, radius, 0, 2 * Math.PI);
    drawing.fillStyle = tint;
    drawing.fill();
    drawing.globalAlpha = 1;
  }

  /**
   * @param {CanvasRenderingContext2D} drawing
   * @param {number} x
   * @param {number} y
   * @param {number} rx
   * @param {number} ry
   * @param {string} tint
   */
  rings(drawing, x, y, rx, ry, tint) {
    for (const scale of [1, 2]) {
      drawing.beginPath();
      drawing.ellipse(x, y, scale * rx, scale * ry, 0, 0, 2 * Math.PI);
      drawing.strokeStyle = tint;
      drawing.lineWidth = 1;
      drawing.stroke();
    }
  }

  /**
   * @param {CanvasRenderingContext2D} drawing
   * @param {number} x
   * @param {number} y
   * @param {number} unit
   * @param {{ l11: number, l21: number, l22: number }} factor
   */
  ellipses(drawing, x, y, unit, { l11, l21, l22 }) {
    for (const [scale, alpha] of [
      [2, 0.12],
      [1, 0.22],
    ]) {
      drawing.beginPath();
      for (let k = 0; k <= 64; k++) {
        const [u, v] = [scale * Math.cos((k * Math.PI) / 32), scale * Math.sin((k * Math.PI) / 32)];
        drawing.lineTo(x + l11 * u * unit, y - (l21 * u + l22 * v) * unit);
      }
      drawing.globalAlpha = alpha;
      drawing.fillStyle = colour("warm");
      drawing.fill();
      drawing.globalAlpha = 1;
      drawing.strokeStyle = colour("warm");
      drawing.lineWidth = 1.2;
      drawing.stroke();
    }
  }
}

/** @param {number} t */
function ease(t) {
  return t < 0.5 ? 4 * t * t * t : 1 - (2 - 2 * t) ** 3 / 2;
}
