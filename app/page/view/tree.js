/** @file Labels below labels: a tree of the names with slashes, walked by keys, a step at a time. */

import { Key, html, useKeys, useState } from "./ui.js";

const KEYS = [..."123456789"];

/** @typedef {{path: string, step: string, below: Map<string, Node>}} Node `path`: the label, of which `step` is the last part */

/** The tree of some names; null unless a step has a choice below it, as sport of sport/football and sport/tennis: n/a alone is a name. @param {(string | number)[]} names
 * @returns {Node | null} */
export function treeOf(names) {
  /** @type {Node} */
  const root = { path: "", step: "", below: new Map() };
  const nodes = /** @type {Node[]} */ ([]);
  if (names.some((name) => typeof name !== "string" || /^\/|\/\/|\/$/.test(name)) || !names.some((name) => String(name).includes("/"))) return null;
  for (const name of names) {
    let node = root;
    for (const step of String(name).split("/")) {
      const known = node.below.get(step) ?? { path: node.path ? `${node.path}/${step}` : step, step, below: new Map() };
      if (!node.below.has(step)) nodes.push(known);
      node.below.set(step, known);
      node = known;
    }
  }
  return nodes.some(({ path, below }) => below.size > (names.includes(path) ? 0 : 1)) ? root : null;
}

/** The classes of a step: a key or a click goes a step deeper, or labels where nothing is below; Enter labels what is above, which is as deep as a
 * person knows. @param {{tree: Node, guess?: any, onLabel: (label: string) => void}} props */
export function Tree({ tree, guess, onLabel }) {
  const [at, setAt] = useState(/** @type {string[]} */ ([]));
  const node = at.reduce((/** @type {Node} */ found, step) => found.below.get(step) ?? found, tree);
  const listed = [...node.below.values()];
  const take = (/** @type {Node} */ each) => (each.below.size ? setAt(each.path.split("/")) : done(each.path));
  const done = (/** @type {string} */ label) => (setAt([]), onLabel(label));
  useKeys((event) => {
    const place = KEYS.indexOf(event.key);
    if (place >= 0 && listed[place]) event.preventDefault(), take(listed[place]);
    if (at.length && (event.key === "Backspace" || event.key === "Escape")) event.preventDefault(), setAt(at.slice(0, -1));
    if (at.length && event.key === "Enter" && !(/** @type {HTMLElement} */ (event.target).closest("button, a"))) event.preventDefault(), done(node.path);
  }, true);
  return html`${at.length > 0 && html`<p class="row wide" role="status"><button class="small" onClick=${() => setAt(at.slice(0, -1))}><${Key}>⌫<//> back</button><b dir="auto">${at.join(" / ")}</b> <span class="quiet">which one?</span></p>`}
    ${listed.map((each, k) => html`<button key=${each.path} class=${guess === each.path || String(guess ?? "").startsWith(`${each.path}/`) ? "answer guessed" : "answer"} onClick=${() => take(each)}>${KEYS[k] && html`<${Key}>${KEYS[k]}<//>`}<span class="clip" dir="auto">${each.step}</span>${each.below.size > 0 && html`<span class="quiet" aria-label=${`with ${each.below.size} below`}>› ${each.below.size}</span>`}</button>`)}
    ${at.length > 0 && html`<button class="answer" onClick=${() => done(node.path)}><${Key}>Enter<//><span class="clip" dir="auto">${node.step}, no deeper</span></button>`}`;
}
