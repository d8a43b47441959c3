/** @file What all views are made of: elements, signals, and small parts that look the same everywhere. */

import { h, render } from "../vendor/preact.mjs";
import { useEffect, useLayoutEffect, useRef, useState } from "../vendor/hooks.mjs";
import { batch, computed, effect, signal, useComputed, useSignal } from "../vendor/signals.mjs";
import htm from "../vendor/htm.mjs";

export const html = htm.bind(h);
export { batch, computed, effect, render, signal, useComputed, useEffect, useLayoutEffect, useRef, useSignal, useState };

/** What screen readers hear, set by `say`. */
export const spoken = signal("");

/** Let screen readers say a text, also when it is the same as before. @param {string} text */
export function say(text) {
  spoken.value = spoken.value === text ? `${text} ` : text;
}

/** A share as a percentage. @param {number | null | undefined} share @param {number} [digits] */
export function percent(share, digits = 0) {
  return share === null || share === undefined ? "–" : `${(100 * share).toFixed(digits)}%`;
}

/** A sentence that begins with a capital, unless its first word is the name of a file or a field. @param {string} text */
export const sentence = (text) => (/^[^\s:]*[._\d/[]\S/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1));

/** A text with a full stop, unless it ends with a mark. @param {string} text */
export const stopped = (text) => (/[.!?…]$/.test(text) ? text : `${text}.`);

/** A number with a noun. @param {number} count @param {string} noun */
export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : noun.endsWith("s") ? "es" : "s"}`;
}

/** A moment in words that fit a table. @param {string} time */
export function when(time) {
  return new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/** What the service does before it can sort or filter by what a model says: once a version, seconds for 100,000 documents. @param {number} documents */
export const reading = (documents) => `The model reads ${counted(documents, "document")}, once for each version. What is asked for then comes by itself.`;

/** A bar of a share, with a text beside it. @param {{share: number, label: string, text: string, strong?: boolean}} props */
export function Bar({ share, label, text, strong }) {
  const width = `${Math.max(0, Math.min(1, share)) * 100}%`;
  return html`<div class=${`bar${strong ? " strong" : ""}`}>
    <span class="bar-label" title=${label}>${label}</span>
    <span class="bar-track" aria-hidden="true"><span class="bar-fill" style=${{ width }}></span></span>
    <span class="bar-text">${text}</span>
  </div>`;
}

/** A message about what went wrong or what can be done. @param {{kind?: string, children: any}} props */
export function Notice({ kind = "info", children }) {
  return html`<div class=${`notice ${kind}`} role=${kind === "error" ? "alert" : "status"}>${children}</div>`;
}

const MOST_FAULTS = 6;
/** The beginning of a sentence whose subject is the field. */
const VERB = /^(is|has|must|may|needs|names)\b/;

/** A place in a file, and what is wrong there. */
const LINE = /^(line \d+|row \d+ of the sheet '[^']*'): (.*)$/s;

/** A link to what helps against a problem of the service, which the person at the page did not cause. @param {{type?: string, status: number}} props */
export function Remedy({ type, status }) {
  return type?.startsWith("/problems/") && status >= 500 ? html` <a href=${type.slice(1)}>What helps</a>` : null;
}

/** An error of a call, with what it names; what is wrong with many documents is said once. @param {{error: any}} props */
export function Problem({ error }) {
  if (!error) return null;
  const faults = error.faults ?? [];
  /** @type {Map<string, string[]>} */
  const places = new Map();
  for (const { place, field, detail } of faults) {
    const [, line, said] = LINE.exec(detail) ?? [, place, detail];
    const what = !field ? said : VERB.test(said) ? `${field} ${said}` : `${field}: ${said}`;
    places.set(what, [...(places.get(what) ?? []), line].filter(Boolean));
  }
  if (faults.length < 2) return html`<${Notice} kind="error"><p>${stopped(sentence(error.message))}<${Remedy} ...${error} /></p><//>`;
  return html`<${Notice} kind="error"><p>The first of what is wrong:</p>
    <ul>${[...places].slice(0, MOST_FAULTS).map(([what, named]) => html`<li>${sentence(what)}${named.length > 0 && html` (<b>${named.slice(0, MOST_FAULTS).join(", ")}${named.length > MOST_FAULTS ? " …" : ""}</b>)`}</li>`)}</ul>
  <//>`;
}

/** What a view shows while it has nothing. @param {{title: string, children?: any}} props */
export function Empty({ title, children }) {
  return html`<div class="empty"><h2>${title}</h2>${children}</div>`;
}

/** What scrolls within itself, so that the keyboard must reach it. @param {{label: string, children: any}} props */
export function Scroll({ label, children }) {
  return html`<div class="scroll" role="region" aria-label=${label} tabindex="0">${children}</div>`;
}

/** A document as it is read: it scrolls within itself. It takes the focus that nothing else has, so that the keyboard is a step away from the answers.
 * @param {{children: any}} props */
export function Paper({ children }) {
  const frame = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => void (document.activeElement?.matches("body, main, header a") && frame.current?.focus({ preventScroll: true })), []);
  return html`<article ref=${frame} class="card paper" tabindex="0" aria-label="Document">${children}</article>`;
}

const STEPS = { ArrowDown: 60, ArrowUp: -60, PageDown: 240, PageUp: -240 };

/** Let the keys that scroll move the document that is read. @param {KeyboardEvent} event */
export function scrollPaper(event) {
  const step = STEPS[/** @type {keyof typeof STEPS} */ (event.key)];
  const paper = document.querySelector(".paper");
  if (!step || !paper || paper.scrollHeight <= paper.clientHeight || paper.contains(/** @type {Node} */ (event.target))) return;
  event.preventDefault();
  paper.scrollBy(0, step);
}

/** A key of the keyboard. @param {{children: any}} props */
export function Key({ children }) {
  return html`<kbd>${children}</kbd>`;
}

/** Call a function now and then while a view is shown. @param {() => void} tick @param {number} milliseconds */
export function useInterval(tick, milliseconds) {
  const latest = useRef(tick);
  latest.current = tick;
  useEffect(() => {
    latest.current();
    const timer = setInterval(() => document.hidden || latest.current(), milliseconds);
    return () => clearInterval(timer);
  }, [milliseconds]);
}

/** Hear keys that are not typed into a field. @param {(event: KeyboardEvent) => void} hear @param {boolean} first before others */
export function useKeys(hear, first = false) {
  const latest = useRef(hear);
  latest.current = hear;
  // before the screen is painted: a key whose button is seen is heard
  useLayoutEffect(() => {
    const since = performance.now();
    const listen = (/** @type {KeyboardEvent} */ event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      const typed = target.matches("input:not([type=checkbox]), textarea, select");
      // a key that is held down answers once, not every document that comes
      const held = event.repeat && !(event.key in STEPS);
      // the key that opened this view is on its way here yet, and was meant for what stood before
      const early = event.timeStamp < since;
      if (early || typed || held || event.ctrlKey || event.metaKey || event.altKey) return;
      latest.current(event);
    };
    document.addEventListener("keydown", listen, first);
    return () => document.removeEventListener("keydown", listen, first);
  }, []);
}

/** Milliseconds until what failed for a while is tried again. */
export const AGAIN = 2000;
/** The service has as much to do for this person as it takes at a time. */
export const BUSY = 429;
/** Absent, too busy, or not ready: what is worth another attempt. */
export const PASSING = [0, BUSY, 503];

/** Load something when what it depends on changes; what comes too late is dropped, and what fails for a while is tried again.
 * @template T @param {() => Promise<T>} load @param {any[]} depends @returns {{value: T | null, error: any, loaded: boolean, again: () => void}} */
export function useLoad(load, depends) {
  const [state, setState] = useState({ value: /** @type {any} */ (null), error: null, loaded: false });
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    let current = true, timer = 0;
    const failed = (/** @type {any} */ error) => {
      // who waits for a turn is told what for by the view
      if (error.status !== BUSY) setState((before) => ({ value: before.value, error, loaded: true }));
      if (PASSING.includes(error.status)) timer = setTimeout(() => setTurn((before) => before + 1), AGAIN);
    };
    load().then(
      (value) => current && setState({ value, error: null, loaded: true }),
      (error) => current && failed(error),
    );
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [...depends, turn]);
  return { ...state, again: () => setTurn((before) => before + 1) };
}
