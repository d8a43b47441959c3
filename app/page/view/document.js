/** @file A document as a person reads it. Text is only ever a text node. */

import { html } from "./ui.js";

const MOST = 20_000;

/** @param {{document: any, terms?: string[]}} props */
export function Document({ document, terms = [] }) {
  if (document.text !== undefined && document.text !== null) return html`<${Text} text=${document.text} terms=${terms} />`;
  return html`<${Values} pairs=${pairs(document)} />`;
}

/** @param {{text: string, terms: string[]}} props */
function Text({ text, terms }) {
  const shown = text.slice(0, MOST);
  if (!text.trim()) return html`<p class="document quiet">This document has no text.</p>`;
  return html`<div class="document" dir="auto">${marked(shown, terms)}${text.length > MOST && html`<p class="quiet">… ${(text.length - MOST).toLocaleString("en")} more characters</p>`}</div>`;
}

/** A text with its terms marked. @param {string} text @param {string[]} terms */
function marked(text, terms) {
  const words = new Set(terms.map((term) => term.toLowerCase()));
  if (!words.size) return text;
  return text.split(/([\p{L}\p{N}_]+)/u).map((piece, k) => (k % 2 && words.has(piece.toLowerCase()) ? html`<mark>${piece}</mark>` : piece));
}

/** @param {{pairs: [string, number][]}} props */
function Values({ pairs }) {
  return html`<div class="document"><table><thead><tr><th>feature</th><th class="number">value</th></tr></thead>
    <tbody>${pairs.slice(0, 40).map(([name, value]) => html`<tr><td>${name}</td><td class="number">${value}</td></tr>`)}</tbody></table>
    ${pairs.length > 40 && html`<p class="quiet">… ${pairs.length - 40} more, the largest are shown</p>`}</div>`;
}

/** Names and values, the largest first. @param {any} document @returns {[string, number][]} */
function pairs(document) {
  const found = document.features ? Object.entries(document.features) : (document.indices ?? document.vector ?? []).map((/** @type {number} */ index, /** @type {number} */ k) => (document.indices ? [`feature ${index}`, document.values[k]] : [`number ${k}`, index]));
  return found.sort((/** @type {any} */ a, /** @type {any} */ b) => Math.abs(b[1]) - Math.abs(a[1]));
}

/** A document in a line. @param {any} document */
export function snippet(document) {
  return document.text ?? pairs(document).slice(0, 8).map(([name, value]) => `${name} ${value}`).join(", ");
}
