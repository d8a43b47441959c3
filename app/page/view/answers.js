/** @file The buttons of the classes: they stay where they are, and show their keys. */

import { plainly } from "./classes.js";
import { Tree, treeOf } from "./tree.js";
import { Key, html, useKeys, useRef, useState } from "./ui.js";

export const KEYED = 9;
/** Most characters of a name of a class. */
const LONGEST = 256;
const SHOWN = 20;
/** Buttons of classes in groups, while nothing is typed. */
const GROUPED = 200;
/** Characters that classes have in common before these are left out. */
const COMMON = 12;
/** Keys of the views, which no class may have. Above nine classes letters find a class, and only undo has its key. */
export const RESERVED = ["u", "f", "n", "h", "c"];

/** @typedef {import("./classes.js").Class} Class */

/** Buttons of classes, or above nine a field in which typing finds one.
 * @param {{classes: Class[], guess?: any, onLabel: (label: string | number) => void, integers?: boolean, onNew?: (names: string[]) => void}} props */
export function Answers({ classes, guess, integers, onLabel, onNew }) {
  const tree = treeOf(classes.map(({ name }) => name));
  const many = classes.length > KEYED;
  const shown = differing(classes.map(({ name }) => String(name)));
  useKeys((event) => {
    const found = classes.find(({ key }) => key === event.key);
    if (!found || tree) return;
    event.preventDefault();
    onLabel(found.name);
  });
  return html`<div class="answers">
    ${tree && html`<${Tree} tree=${tree} guess=${guess} onLabel=${onLabel} />`}
    ${many ? html`<${Finder} classes=${classes} guess=${guess} quiet=${Boolean(tree)} onLabel=${onLabel} />` : !tree && classes.map((each, k) => html`<${Answer} key=${each.name} of=${each} shown=${shown[k]} guessed=${each.name === guess} onLabel=${onLabel} />`)}
    ${onNew && html`<${NewClass} classes=${classes} integers=${integers} onNew=${onNew} />`}
  </div>`;
}

/** Classes by the part of their names before the first slash, dot or colon, where several share it; the others are of the group "".
 * @param {Class[]} classes @returns {Map<string, Class[]>} */
export function grouped(classes) {
  const prefix = (/** @type {Class} */ { name }) => /^([^/.:]+)[/.:]+./.exec(String(name))?.[1] ?? "";
  /** @type {Map<string, Class[]>} */
  const groups = new Map();
  for (const each of classes) groups.set(prefix(each), [...(groups.get(prefix(each)) ?? []), each]);
  const lone = [...groups].filter(([name, members]) => !name || members.length < 2).flatMap(([, members]) => members);
  return new Map([...[...groups].filter(([name, members]) => name && members.length > 1), ...(lone.length ? [/** @type {[string, Class[]]} */ (["", lone])] : [])]);
}

/** Names without a long beginning that they share with others, so that what tells them apart is seen. @param {string[]} names */
export function differing(names) {
  const sorted = [...names].sort();
  const common = (/** @type {string} */ one, /** @type {string} */ other) => {
    let k = 0;
    while (k < one.length && one[k] === other[k]) k += 1;
    return one.slice(0, k).search(/[^\p{L}\p{N}][\p{L}\p{N}]*$/u) + 1;
  };
  return names.map((name) => {
    const place = sorted.indexOf(name);
    const shared = Math.max(...[sorted[place - 1], sorted[place + 1]].map((other) => (other === undefined ? 0 : common(name, other))));
    return shared > COMMON ? `… ${name.slice(shared)}` : name;
  });
}

/** @param {{of: Class, shown?: string, guessed: boolean, onLabel: (label: string | number) => void}} props */
function Answer({ of: { name, key, description, color }, shown, guessed, onLabel }) {
  const title = [shown !== undefined && shown !== String(name) ? name : "", description].filter(Boolean).join(": ");
  return html`<button class=${guessed ? "answer guessed" : "answer"} title=${title || undefined} aria-label=${shown !== undefined && shown !== String(name) ? `${key ? `${key} ` : ""}${name}` : undefined} style=${color ? { borderInlineStart: `4px solid ${color}` } : undefined} onClick=${() => onLabel(name)}>${key && html`<${Key}>${key}<//>`}<span class="clip" dir="auto">${shown ?? name}</span></button>`;
}

/** The classes with a text in their names, those first that begin with it. @param {Class[]} classes @param {string} wanted */
export function matching(classes, wanted) {
  const begins = classes.filter(({ name }) => String(name).toLowerCase().startsWith(wanted));
  return [...begins, ...classes.filter((each) => !begins.includes(each) && String(each.name).toLowerCase().includes(wanted))];
}

/** @param {{classes: Class[], guess: any, quiet?: boolean, onLabel: (label: string | number) => void}} props `quiet`: only what is typed is listed */
function Finder({ classes, guess, quiet, onLabel }) {
  const [text, setText] = useState("");
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const wanted = text.trim().toLowerCase();
  const guessed = classes.find(({ name }) => name === guess);
  const found = wanted ? matching(classes, wanted) : guessed ? [guessed, ...classes.filter((each) => each !== guessed)] : classes;
  const groups = wanted || guessed ? [/** @type {[string, Class[]]} */ (["", found.slice(0, SHOWN)])] : [...grouped(found.slice(0, GROUPED))];
  const most = wanted || guessed ? SHOWN : GROUPED;
  useKeys((event) => {
    if (/^[\p{L}\p{N}]$/u.test(event.key) && event.key !== "u" && !(quiet && /\d/.test(event.key)) && !classes.some(({ key }) => key === event.key)) field.current?.focus();
  });
  // the keys are those of the view again, until the next class is typed
  const leave = () => (setText(""), field.current?.blur());
  const enter = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Escape") leave();
    if (event.key !== "Enter" || event.repeat || !found.length || (!wanted && !guessed)) return;
    event.preventDefault();
    event.stopPropagation();
    onLabel(found[0].name);
    leave();
  };
  return html`<label class="finder">Class <input ref=${field} name="class" value=${text} autocomplete="off" spellcheck=${false} placeholder=${`type to find one of ${classes.length}, Enter confirms`}
      onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${enter} /></label>
    ${(!quiet || wanted) && html`<div class="found">${groups.map(([prefix, members]) => html`<div class="group" role=${prefix ? "group" : undefined} aria-label=${prefix || undefined} key=${prefix}>${prefix && html`<span class="quiet">${prefix}</span>`}<div class="row">${members.map((each) => html`<${Answer} key=${each.name} of=${each} shown=${prefix ? String(each.name).slice(prefix.length).replace(/^[/.:]+/, "") : undefined} guessed=${each === found[0] && (wanted !== "" || guessed !== undefined)} onLabel=${(/** @type {string | number} */ name) => (onLabel(name), setText(""))} />`)}</div></div>`)}
    ${found.length > most && html`<span class="quiet">${found.length - most} more: type to find them</span>`}</div>`}`;
}

/** A field for new classes, several separated by commas. @param {{classes: Class[], integers?: boolean, onNew: (names: string[]) => void}} props */
export function NewClass({ classes, integers, onNew }) {
  const [text, setText] = useState("");
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const names = [...new Set(text.split(",").map((name) => name.trim()).filter(Boolean))];
  const alike = classes.find((each) => names.some((name) => plainly(each.name) === plainly(name) && String(each.name) !== name));
  const wrong = integers && names.some((name) => !/^-?\d+$/.test(name)) ? "The classes here are whole numbers." : names.some((name) => name.length > LONGEST) ? `A name has at most ${LONGEST} characters.` : alike ? `“${alike.name}” is there already.` : "";
  const leave = () => field.current?.blur();
  useKeys((event) => {
    if (event.key === "c" && classes.length <= KEYED) event.preventDefault(), field.current?.focus();
  });
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (wrong) return;
    if (names.length) onNew(names);
    setText("");
    // with two classes the digits are answers: the next one must not go into the field
    if (classes.length + names.length >= 2) leave();
  };
  return html`<form class="new-class" onSubmit=${add}><input ref=${field} name="new-class" value=${text} maxlength="1000" placeholder="new class" aria-label="Name of a new class" autocomplete="off" onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && (setText(""), leave())} /><button disabled=${!names.length || wrong !== ""}>Add</button>
    ${classes.length < 2 && html`<span class="quiet">${classes.length ? "Add another class, or find more of this one." : "Which classes are there? Add two or more: “spam, ham”."}</span>`}
    ${wrong && html`<span class="quiet" role="status">${wrong}</span>`}</form>`;
}
