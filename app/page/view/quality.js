/** @file How good a version is: one number and one sentence, the same in all views. The audit says it, or else the labels left out. */

import { counted, html, percent } from "./ui.js";

/** @typedef {{right: number, low: number, high: number, labels: number, likeliest: number | null, by: "audit" | "votes" | "left out"}} Quality */

/** How often a version is right. @param {any} version @param {any} [audit] the last @returns {Quality | null} */
export function qualityOf(version, audit) {
  const measured = audit?.versions.find((/** @type {any} */ each) => each.version === version.version && each.model === version.name);
  if (measured?.labels) return { right: 1 - measured.error, low: 1 - measured.high, high: 1 - measured.low, labels: measured.labels, likeliest: audit.likeliest, by: "audit" };
  const held = version.held_out;
  return held ? { right: held.right / held.labels, low: held.low, high: held.high, labels: held.labels, likeliest: held.likeliest, by: held.by_votes ? "votes" : "left out" } : null;
}

/** The number with its interval, short enough for a table. @param {{quality: Quality | null}} props */
export function Right({ quality }) {
  if (!quality) return html`<span>–</span>`;
  return html`<span><b>${percent(quality.right, 1)}</b> <span class="quiet">${interval(quality)}</span></span>`;
}

/** The sentence. @param {{quality: Quality | null}} props */
export function Sentence({ quality }) {
  if (!quality) return html`<p class="quiet">How often it is right is not known yet.</p>`;
  const votes = quality.by === "votes";
  const of = quality.by === "audit" ? `${counted(quality.labels, "random document")} of the audit` : `${counted(quality.labels, votes ? "document" : "label")} that were left out of its training`;
  return html`<p class="quality"><b>${votes ? "Agrees with the votes" : "Right"} on ${percent(quality.right, 1)}</b> of ${of}, likely ${interval(quality)} of all.${!votes && quality.likeliest !== null && ` Always saying the likeliest class would be right on ${percent(quality.likeliest)}.`}</p>`;
}

/** @param {Quality} quality */
const interval = ({ low, high }) => `${percent(low)} to ${percent(high)}`;
