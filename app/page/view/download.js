/** @file The way out: all documents with label, by whom, predicted and probability, as a file. */

import { part, save } from "./api.js";
import { Problem, html, useState } from "./ui.js";

const FORMATS = { csv: ["CSV", "text/csv"], ndjson: ["NDJSON", "application/x-ndjson"], parquet: ["Parquet", "application/vnd.apache.parquet"] };
/** The step between probabilities, which have 32 bits: a promise is for those above its bound. */
const STEP = 2 ** -24;

/** @typedef {{model: string, version: number, at_least: number | null}} Automatic documents that may be labeled by themselves, as an audit says */

/** @param {{dataset: any, model?: string | null, automatic?: Automatic | null}} props `model`: name or name/number of what predicts, if there is one */
export function Download({ dataset, model, automatic }) {
  const [format, setFormat] = useState(/** @type {keyof typeof FORMATS} */ ("csv"));
  const [which, setWhich] = useState("all");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const start = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await save(`v1/datasets/${part(dataset.id)}/documents`, queryOf(which, model, automatic), FORMATS[format][1], `${dataset.name ?? dataset.id}${which === "all" ? "" : `-${which}`}.${format}`);
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return html`<form class="download" onSubmit=${start} aria-label=${`Download ${model ?? dataset.name ?? dataset.id}`}><div class="row">
      <select name="which" aria-label="Which documents" value=${which} onChange=${(/** @type {any} */ event) => setWhich(event.target.value)}>
        <option value="all">all documents</option><option value="labeled">only those with a label</option>${automatic && html`<option value="automatic">only what may be labeled by itself</option>`}</select>
      <select name="format" aria-label="Format" value=${format} onChange=${(/** @type {any} */ event) => setFormat(event.target.value)}>${Object.entries(FORMATS).map(([key, [name]]) => html`<option key=${key} value=${key}>${name}</option>`)}</select>
      <button disabled=${busy}>${busy ? "Writing …" : "Download"}</button></div><${Problem} error=${error} /></form>`;
}

/** @param {string} which @param {string | null} [model] @param {Automatic | null} [automatic] @returns {Record<string, any>} */
function queryOf(which, model, automatic) {
  if (which === "automatic" && automatic) return { model: `${automatic.model}/${automatic.version}`, state: "unlabeled", at_least: automatic.at_least === null ? undefined : automatic.at_least + STEP };
  return { model, state: which === "labeled" ? "labeled" : undefined };
}
