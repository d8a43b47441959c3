/** @file The error of the versions by the labels that they learned from, with intervals, and what more labels are likely to bring. */

import { html, percent } from "./ui.js";

const WIDTH = 480, HEIGHT = 200, LEFT = 44, RIGHT = 16, TOP = 10, BOTTOM = 38;
const LINES = 4;

/** @typedef {{learned: number, error: number, low: number, high: number, version?: number}} Point */

/** @param {{versions: any[], forecast: any}} props what an audit says of the versions, and its forecast */
export function Curve({ versions, forecast }) {
  /** @type {Point[]} */
  const points = versions.filter((each) => each.labels && each.learned).sort((one, other) => one.learned - other.learned || (one.version ?? 0) - (other.version ?? 0));
  if (points.length < 2) return null;
  const last = points[points.length - 1];
  const next = forecast && { learned: last.learned + forecast.labels, error: forecast.expected, low: forecast.low, high: forecast.high };
  const all = next ? [...points, next] : points;
  const most = Math.max(0.02, ...all.map((each) => each.high));
  const end = all[all.length - 1].learned;
  const across = (/** @type {number} */ learned) => LEFT + ((WIDTH - LEFT - RIGHT) * learned) / end;
  const up = (/** @type {number} */ error) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - error / most);
  const said = `Error by labels: ${points.map((each) => `${percent(each.error, 1)} after ${each.learned}`).join(", ")}`;
  return html`<figure class="curve"><svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${said}>
      ${Array.from({ length: LINES + 1 }, (_, k) => (most * k) / LINES).map((error) => html`<line class="curve-grid" x1=${LEFT} x2=${WIDTH - RIGHT} y1=${up(error)} y2=${up(error)} /><text x=${LEFT - 6} y=${up(error) + 4} text-anchor="end">${percent(error, most < 0.05 ? 1 : 0)}</text>`)}
      ${spread(all).map((each) => html`<text x=${across(each.learned)} y=${HEIGHT - BOTTOM + 16} text-anchor="middle">${each.learned}</text>`)}
      <text x=${(LEFT + WIDTH - RIGHT) / 2} y=${HEIGHT - 4} text-anchor="middle">labels</text>
      <polyline class="curve-line" points=${points.map((each) => `${across(each.learned)},${up(each.error)}`).join(" ")} />
      ${next && html`<polyline class="curve-line curve-next" points=${[last, next].map((each) => `${across(each.learned)},${up(each.error)}`).join(" ")} />`}
      ${all.map((each) => html`<g class=${each === next ? "curve-next" : ""}><line class="curve-bar" x1=${across(each.learned)} x2=${across(each.learned)} y1=${up(each.low)} y2=${up(each.high)} /><circle cx=${across(each.learned)} cy=${up(each.error)} r="4"><title>${each === next ? "likely" : `version ${each.version}`}: ${percent(each.error, 1)}, from ${percent(each.low, 1)} to ${percent(each.high, 1)}</title></circle></g>`)}
    </svg><figcaption class="quiet">Error by the labels that a version learned from.${next ? " Hollow: what more labels are likely to bring." : ""}</figcaption></figure>`;
}

/** The points whose labels fit beside each other below the axis, the last one first. @param {Point[]} points */
function spread(points) {
  const room = points[points.length - 1].learned / 12;
  /** @type {Point[]} */
  const shown = [];
  for (const point of [...points].reverse()) if (!shown.length || shown[shown.length - 1].learned - point.learned >= room) shown.push(point);
  return shown;
}
