/** @file How good a version is: one number and one sentence, the same in all views. The audit says it, or else the labels left out. */

import { html, percent } from "./ui.js";

/** @typedef {{right: number, low: number, high: number, labels: number, likeliest: number | null, by: "audit" | "left out"}} Quality */

/** How often a version is right. @param {any} version @param {any} [audit] the last audit of its dataset, as it was asked for the model @returns {Quality | null} */
export function qualityOf(version, audit) {
  const measured = audit?.versions.find((/** @type {any} */ each) => each.version === version.version && each.model === version.name);
  if (measured?.labels) return { right: 1 - measured.error, low: 1 - measured.high, high: 1 - measured.low, labels: measured.labels, likeliest: audit.likeliest, by: "audit" };
  const held = version.held_out;
  return held ? { right: held.right / held.labels, low: held.low, high: held.high, labels: held.labels, likeliest: held.likeliest, by: "left out" } : null;
}

/** The number with its interval, short enough for a table. @param {{quality: Quality | null}} props */
export function Right({ quality }) {
  if (!quality) return html`<span>–</span>`;
  return html`<span><b>${percent(quality.right, 1)}</b> <span class="quiet">${interval(quality)}</span></span>`;
}

/** The sentence. @param {{quality: Quality | null}} props */
export function Sentence({ quality }) {
  if (!quality) return html`<p class="quiet">How often it is right is not known yet.</p>`;
  const of = quality.by === "audit" ? `${quality.labels} random documents of the audit` : `${quality.labels} labels that were left out of its training`;
  return html`<p class="quality"><b>Right on ${percent(quality.right, 1)}</b> of ${of}, likely ${interval(quality)} of all.${quality.likeliest !== null && ` Always saying the likeliest class would be right on ${percent(quality.likeliest)}.`}</p>`;
}

/** @param {Quality} quality */
const interval = ({ low, high }) => `${percent(low)} to ${percent(high)}`;
