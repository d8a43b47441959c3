/** @file A document as a person reads it. Text is only ever a text node. */

import { html, useEffect, useRef, useState } from "./ui.js";

const MOST = 20_000;
const SNIPPET = 400;

/** @param {{document: any, spans?: [number, number][], find?: string}} props `spans`: what to mark; `find`: a text to mark wherever it is */
export function Document({ document, spans = [], find = "" }) {
  const texts = document.text !== undefined && document.text !== null;
  return html`${texts ? html`<${Text} text=${document.text} spans=${find ? hits(document.text, find) : spans} />` : html`<${Values} pairs=${pairs(document)} />`}<${Beside} fields=${document.fields} />`;
}

/** Where a text is found, in whatever case, in characters. @param {string} text @param {string} find @returns {[number, number][]} */
export function hits(text, find) {
  const wanted = find.toLowerCase(), lower = text.toLowerCase();
  /** @type {[number, number][]} */
  const found = [];
  // some letters are longer in lower case: then places do not fit, and nothing is marked
  if (!wanted || lower.length !== text.length) return found;
  for (let place = lower.indexOf(wanted); place >= 0; place = lower.indexOf(wanted, place + wanted.length)) {
    const start = [...text.slice(0, place)].length;
    found.push([start, start + [...wanted].length]);
  }
  return found;
}

/** Labels in words: one, or all of several. @param {any} label */
export const worded = (label) => (Array.isArray(label) ? label.join(", ") || "none of the classes" : label);

/** Whether a document may have several labels. @param {any} document */
export const isSeveral = (document) => document.labels !== undefined || document.not !== undefined;

/** The labels of a document, one or several; null if they are not known. @param {any} document @returns {any[] | null} */
export const labelsOf = (document) => (isSeveral(document) ? (document.labels ?? null) : document.label === null ? null : [document.label]);

/** A document over the others, to be read whole. @param {{document: any, find?: string, onClose: () => void, children?: any}} props */
export function Opened({ document, find, onClose, children }) {
  const frame = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => frame.current?.showModal(), []);
  return html`<dialog ref=${frame} class="opened" aria-label=${`Document ${document.id}`} onClose=${onClose}><p class="row quiet"><span class="clip">${document.id}</span><button class="small row-end" onClick=${() => frame.current?.close()}>Close</button></p>
    <div class="opened-text" tabindex="0" role="region" aria-label="Text"><${Document} document=${document} find=${find} /><${Notes} notes=${document.notes} /></div>${children}</dialog>`;
}

/** What people wrote about a document. @param {{notes?: Record<string, string>}} props */
export function Notes({ notes }) {
  const written = Object.entries(notes ?? {}).filter(([, text]) => text);
  if (!written.length) return null;
  return html`<dl class="beside" aria-label="Notes">${written.map(([person, text]) => html`<div key=${person}><dt>${person || "note"}</dt><dd dir="auto">${text}</dd></div>`)}</dl>`;
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
export function marked(text, spans) {
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
