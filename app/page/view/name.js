/** @file Who sits here: asked once, so that the answers of several people are told apart. */

import { change, project } from "./project.js";
import { store, stored } from "./stored.js";
import { html, useState } from "./ui.js";

const ASKED = "halfmoon.asked";

/** The question, until it is answered. @param {{needed: boolean}} props `needed`: the name says which documents are whose */
export function Name({ needed }) {
  const [asked, setAsked] = useState(stored(ASKED, false));
  if (project.value.by || (asked && !needed)) return null;
  const done = () => (store(ASKED, true), setAsked(true));
  return html`<div class="notice row"><${NameField} onDone=${done} />${!needed && html`<button class="small" onClick=${done}>I work alone</button>`}<span class="quiet">${needed ? "It says which documents are yours." : "It stands beside your answers."}</span></div>`;
}

/** A field for the name of the person. @param {{onDone?: () => void}} props */
export function NameField({ onDone }) {
  const [name, setName] = useState(project.value.by);
  const keep = (/** @type {Event} */ event) => {
    event.preventDefault();
    change({ by: name.trim().slice(0, 100) });
    onDone?.();
  };
  return html`<form class="row" onSubmit=${keep}><label class="row">Your name <input name="by" class="short" maxlength="100" value=${name} autocomplete="name" onInput=${(/** @type {any} */ event) => setName(event.target.value)} /></label><button class="small">Save</button></form>`;
}
