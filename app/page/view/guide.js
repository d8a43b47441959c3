/** @file How to label: guidelines, and each class with its description and examples. */

import { get, part } from "./api.js";
import { snippet } from "./document.js";
import { to } from "./route.js";
import { html, useLoad } from "./ui.js";

const EXAMPLES = 2;
const MOST_CLASSES = 12;

/** @param {{dataset: any, classes: import("./classes.js").Class[], onClose: () => void}} props */
export function Guide({ dataset, classes, onClose }) {
  const shown = classes.slice(0, MOST_CLASSES);
  const examples = useLoad(() => Promise.all(shown.map(({ name }) => get(`v1/datasets/${part(dataset.id)}/documents`, { label: name, limit: EXAMPLES }).then(({ documents }) => documents, () => []))), [shown.map(({ name }) => name).join()]);
  return html`<div class="card keys guide" role="region" aria-label="Guidelines" tabindex="0">
    ${dataset.guidelines ? html`<p class="written">${dataset.guidelines}</p>` : html`<p class="quiet">Nobody has written guidelines yet.</p>`}
    ${shown.map(({ name, description }, k) => html`<h3 key=${name} dir="auto">${name}</h3>${description && html`<p>${description}</p>`}
      ${(examples.value?.[k] ?? []).map((/** @type {any} */ each) => html`<p class="quiet lines" dir="auto">${snippet(each)}</p>`)}`)}
    <p class="row"><a class="button" href=${to("classes", dataset.id)}>Change</a><button onClick=${onClose}>Close</button></p></div>`;
}
