/** @file The buttons of the classes: they stay where they are, and show their keys. */

import { Key, html, useKeys, useRef, useState } from "./ui.js";

const KEYED = 9;
const SHOWN = 20;

/** Buttons of classes, or above nine a field in which typing finds one.
 * @param {{classes: (string | number)[], guess?: any, onLabel: (label: string | number) => void, integers?: boolean, onNew?: (name: string) => void}} props */
export function Answers({ classes, guess, integers, onLabel, onNew }) {
  const many = classes.length > KEYED;
  useKeys((event) => {
    const place = Number(event.key) - 1;
    if (!many && place >= 0 && place < classes.length) {
      event.preventDefault();
      onLabel(classes[place]);
    }
  });
  return html`<div class="answers">
    ${many ? html`<${Finder} classes=${classes} guess=${guess} onLabel=${onLabel} />` : classes.map((label, k) => html`<button key=${label} class=${label === guess ? "answer guessed" : "answer"} onClick=${() => onLabel(label)}><${Key}>${k + 1}<//><span class="clip" dir="auto">${label}</span></button>`)}
    ${onNew && html`<${NewClass} classes=${classes} integers=${integers} onNew=${onNew} />`}
  </div>`;
}

/** @param {{classes: (string | number)[], guess: any, onLabel: (label: string | number) => void}} props */
function Finder({ classes, guess, onLabel }) {
  const [text, setText] = useState("");
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const wanted = text.trim().toLowerCase();
  const begins = classes.filter((label) => String(label).toLowerCase().startsWith(wanted));
  const others = classes.filter((label) => !begins.includes(label) && String(label).toLowerCase().includes(wanted));
  const found = wanted ? [...begins, ...others] : guess === undefined || guess === null ? classes : [guess, ...classes.filter((label) => label !== guess)];
  useKeys((event) => {
    if (/^[\p{L}\p{N}]$/u.test(event.key) && event.key !== "u") field.current?.focus();
  });
  // the keys are those of the view again, until the next class is typed
  const leave = () => (setText(""), field.current?.blur());
  const enter = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") leave();
    if (event.key !== "Enter" || event.repeat || !found.length || (!wanted && (guess === undefined || guess === null))) return;
    event.preventDefault();
    event.stopPropagation();
    onLabel(found[0]);
    leave();
  };
  return html`<label class="finder">Class <input ref=${field} name="class" value=${text} autocomplete="off" spellcheck=${false} placeholder=${`type to find one of ${classes.length}, Enter confirms`}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${enter} /></label>
    <div class="found">${found.slice(0, SHOWN).map((label, k) => html`<button key=${label} class=${k === 0 && wanted ? "answer guessed" : "answer"} onClick=${() => (onLabel(label), setText(""))}><span class="clip" dir="auto">${label}</span></button>`)}
    ${found.length > SHOWN && html`<span class="quiet">${found.length - SHOWN} more: type to find them</span>`}</div>`;
}

/** @param {{classes: (string | number)[], integers?: boolean, onNew: (name: string) => void}} props */
function NewClass({ classes, integers, onNew }) {
  const [name, setName] = useState("");
  const trimmed = name.trim();
  const wrong = integers && trimmed !== "" && !/^-?\d+$/.test(trimmed);
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (trimmed && !wrong && !classes.map(String).includes(trimmed)) onNew(trimmed);
    if (!wrong) setName("");
  };
  return html`<form class="new-class" onSubmit=${add}><input name="new-class" value=${name} maxlength="256" placeholder="new class" aria-label="Name of a new class" autocomplete="off" onInput=${(/** @type {any} */ event) => setName(event.target.value)} /><button disabled=${!trimmed || wrong}>Add</button>
    ${classes.length < 2 && html`<span class="quiet">${classes.length ? "Add at least one more class." : "Which classes are there? Add two or more, for example “spam” and “ham”."}</span>`}
    ${wrong && html`<span class="quiet" role="status">The classes here are whole numbers.</span>`}</form>`;
}
