/** @file Classes of which any number may apply: keys and clicks toggle them, Enter confirms. */

import { KEYED, NewClass, differing, grouped, matching } from "./answers.js";
import { Key, html, useKeys, useRef, useState } from "./ui.js";

/** Classes that are shown at once; the others are found by typing. */
const SHOWN = 60;

/** @typedef {import("./classes.js").Class} Class */
/** @typedef {import("./classes.js").Name} Name */

/** @param {{classes: Class[], picked: Name[], onPick: (picked: Name[]) => void, onConfirm: () => void, integers?: boolean, onNew?: (names: string[]) => void}} props */
export function Several({ classes, picked, onPick, onConfirm, integers, onNew }) {
  const [text, setText] = useState("");
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const many = classes.length > KEYED, wanted = text.trim().toLowerCase();
  const found = wanted ? matching(classes, wanted) : [...classes.filter(({ name }) => picked.includes(name)), ...classes.filter(({ name }) => !picked.includes(name))];
  const toggle = (/** @type {Name} */ name) => {
    onPick(picked.includes(name) ? picked.filter((each) => each !== name) : [...picked, name]);
    setText("");
  };
  useKeys((event) => {
    const keyed = classes.find(({ key }) => key === event.key);
    if (keyed) return event.preventDefault(), toggle(keyed.name);
    if (event.key === "Enter" && !(/** @type {HTMLElement} */ (event.target).closest("button, a, summary"))) event.preventDefault(), onConfirm();
    if (many && /^[\p{L}\p{N}]$/u.test(event.key) && event.key !== "u") field.current?.focus();
  });
  const enter = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") setText(""), field.current?.blur();
    if (event.key !== "Enter" || event.repeat) return;
    event.preventDefault();
    event.stopPropagation();
    // a found class is toggled; with nothing typed the answer is whole
    if (!wanted) field.current?.blur(), onConfirm();
    else if (found.length) toggle(found[0].name);
  };
  const shown = many ? found.slice(0, SHOWN) : classes;
  const names = differing(shown.map(({ name }) => String(name)));
  const button = (/** @type {Class} */ each, /** @type {string} */ name) => html`<button key=${each.name} class=${wanted && each === found[0] ? "answer guessed" : "answer"} aria-pressed=${picked.includes(each.name)} title=${[name === String(each.name) ? "" : each.name, each.description].filter(Boolean).join(": ") || undefined} style=${each.color ? { borderInlineStart: `4px solid ${each.color}` } : undefined} onClick=${() => toggle(each.name)}>${each.key && html`<${Key}>${each.key}<//>`}<span class="clip" dir="auto">${name}</span></button>`;
  return html`<div class="answers" role="group" aria-label="Classes that apply">
    ${many && html`<label class="finder">Classes <input ref=${field} name="class" value=${text} autocomplete="off" spellcheck=${false} placeholder=${`type to find some of ${classes.length}, Enter toggles`} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${enter} /></label>`}
    ${many && !wanted && !picked.length ? html`<div class="found">${[...grouped(shown)].map(([prefix, members]) => html`<div class="group" key=${prefix} role=${prefix ? "group" : undefined} aria-label=${prefix || undefined}>${prefix && html`<span class="quiet">${prefix}</span>`}<div class="row">${members.map((each) => button(each, prefix ? String(each.name).slice(prefix.length + 1) : String(each.name)))}</div></div>`)}</div>` : many ? html`<div class="found">${shown.map((each, k) => button(each, names[k]))}</div>` : shown.map((each, k) => button(each, names[k]))}
    ${onNew && html`<${NewClass} classes=${classes} integers=${integers} onNew=${onNew} />`}
    <button class="answer primary" onClick=${onConfirm}><${Key}>Enter<//><span class="clip" dir="auto">${picked.length ? picked.join(", ") : "none of them applies"}</span></button></div>`;
}
