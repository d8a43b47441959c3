/** @file What was done, shown for a moment with the way back, and said to screen readers. */

import { html, say, signal } from "./ui.js";

const SHOWN = 2;
/** Milliseconds to read, and to take something back. */
const READ = 4_000, UNDO = 12_000;

/** @typedef {{number: number, text: string, undo?: () => void}} Toast */

/** What is shown now, the newest last. */
const toasts = signal(/** @type {Toast[]} */ ([]));
let count = 0;

/** Say what was done, and offer to take it back. @param {string} text @param {() => void} [undo] */
export function toast(text, undo) {
  const told = { number: (count += 1), text, undo };
  toasts.value = [...toasts.value, told].slice(-SHOWN);
  say(text);
  setTimeout(() => dismiss(told.number), undo ? UNDO : READ);
}

/** @param {number} number */
const dismiss = (number) => (toasts.value = toasts.value.filter((each) => each.number !== number));

export function Toasts() {
  const take = (/** @type {Toast} */ told) => (dismiss(told.number), told.undo?.());
  return html`<div class="toasts" role="region" aria-label="Messages">${toasts.value.map((told) => html`<div class="toast" key=${told.number}><span>${told.text}</span>
    ${told.undo && html`<button class="small" onClick=${() => take(told)}>Undo</button>`}<button class="small" aria-label="Dismiss" onClick=${() => dismiss(told.number)}>×</button></div>`)}</div>`;
}
