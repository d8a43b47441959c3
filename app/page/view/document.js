/** @file A document as a person reads it. Text is only ever a text node. */

import { html, useState } from "./ui.js";

const MOST = 20_000;
const SNIPPET = 400;

/** @param {{document: any, spans?: [number, number][]}} props */
export function Document({ document, spans = [] }) {
  const texts = document.text !== undefined && document.text !== null;
  return html`${texts ? html`<${Text} text=${document.text} spans=${spans} />` : html`<${Values} pairs=${pairs(document)} />`}<${Beside} fields=${document.fields} />`;
}

/** What is kept beside the document, which no model sees. @param {{fields?: Record<string, any>}} props */
function Beside({ fields }) {
  const filled = Object.entries(fields ?? {}).filter(([, value]) => value !== "");
  if (!filled.length) return null;
  const shown = (/** @type {any} */ value) => (typeof value === "string" ? value : JSON.stringify(value)).slice(0, MOST);
  return html`<dl class="beside quiet" aria-label="Not learned from">${filled.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd dir="auto">${shown(value)}</dd></div>`)}</dl>`;
}

/** @param {{text: string, spans: [number, number][]}} props */
function Text({ text, spans }) {
  const [whole, setWhole] = useState(false);
  const shown = whole ? text : text.slice(0, MOST);
  if (!text.trim()) return html`<p class="document quiet">This document has no text.</p>`;
  return html`<div class="document" dir="auto">${marked(shown, spans)}${shown.length < text.length && html`<p class="quiet">… <button class="small" onClick=${() => setWhole(true)}>${(text.length - MOST).toLocaleString("en")} more characters</button></p>`}</div>`;
}

/** A text with parts of it marked: the service says where, in characters. @param {string} text @param {[number, number][]} spans */
function marked(text, spans) {
  if (!spans.length) return text;
  const characters = [...text];
  const pieces = [];
  let done = 0;
  for (const [start, end] of [...spans].sort((one, other) => one[0] - other[0] || other[1] - one[1])) {
    if (start < done || end > characters.length) continue;
    pieces.push(characters.slice(done, start).join(""), html`<mark>${characters.slice(start, end).join("")}</mark>`);
    done = end;
  }
  return [...pieces, characters.slice(done).join("")];
}

/** @param {{pairs: [string, number][]}} props */
function Values({ pairs }) {
  return html`<div class="document"><table><thead><tr><th>feature</th><th class="number">value</th></tr></thead>
    <tbody>${pairs.slice(0, 40).map(([name, value]) => html`<tr><td>${name}</td><td class="number">${value}</td></tr>`)}</tbody></table>
    ${pairs.length > 40 && html`<p class="quiet">… ${pairs.length - 40} more, the largest are shown</p>`}</div>`;
}

/** Names and values, the largest first. @param {any} document @returns {[string, number][]} */
function pairs({ features, indices, values, vector, vectors }) {
  const found = features
    ? Object.entries(features)
    : indices
      ? indices.map((/** @type {number} */ index, /** @type {number} */ k) => [`feature ${index}`, values[k]])
      : Object.entries(vectors ?? { number: vector ?? [] }).flatMap(([name, numbers]) => numbers.map((/** @type {number} */ number, /** @type {number} */ k) => [`${name} ${k}`, number]));
  return found.sort((/** @type {any} */ a, /** @type {any} */ b) => Math.abs(b[1]) - Math.abs(a[1]));
}

/** What models read of a document. @param {any} document */
export const content = ({ id, text, features, indices, values, vector, vectors }) => ({ id, text, features, indices, values, vector, vectors });

/** A document in a line. @param {any} document */
export function snippet(document) {
  return document.text?.slice(0, SNIPPET) ?? pairs(document).slice(0, 8).map(([name, value]) => `${name} ${value}`).join(", ");
}
