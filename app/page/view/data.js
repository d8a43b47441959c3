/** @file The data: drop a file, see what was understood, choose the columns; the datasets that there are. */

import { call, get, part } from "./api.js";
import { change, project } from "./project.js";
import { go, to } from "./route.js";
import { documentsOfLines, guess, isPacked, lookInto } from "./table.js";
import { Notice, Problem, Scroll, counted, html, say, useLoad, useRef, useState, when } from "./ui.js";

export function Data() {
  const datasets = useLoad(() => get("v1/datasets", { limit: 100 }), []);
  const [file, setFile] = useState(/** @type {File | null} */ (null));
  const listed = datasets.value?.datasets ?? [];
  return html`
    <h1>${listed.length ? "Data" : "Start with your documents"}</h1>
    ${file ? html`<${Upload} file=${file} onCancel=${() => setFile(null)} />` : html`<${Drop} onFile=${setFile} first=${!listed.length} />`}
    <${Problem} error=${datasets.error} />
    ${listed.length > 0 && html`<section><h2>Datasets</h2><${Datasets} listed=${listed} onChange=${datasets.again} /></section>`}`;
}

/** @param {{onFile: (file: File) => void, first: boolean}} props */
function Drop({ onFile, first }) {
  const [over, setOver] = useState(false);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    const file = event.dataTransfer?.files[0];
    if (file) onFile(file);
  };
  return html`
    <div class=${over ? "drop over" : "drop"} onDragOver=${(/** @type {Event} */ event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <p><b>Drop a file here</b>, or</p>
      <button class="primary" onClick=${() => input.current?.click()}>Choose a file</button>
      <input ref=${input} id="file" class="unseen" type="file" tabindex="-1" aria-label="File with documents"
        onChange=${(/** @type {any} */ event) => event.target.files[0] && onFile(event.target.files[0])} />
      <p class="quiet">CSV, TSV, NDJSON, JSON, NumPy's npz, SVMlight, text with a document a line, or a zip of text files in folders named by class.</p>
      ${first && html`<p class="quiet">No labels are needed. You label a few, and the model learns from all.</p>`}
    </div>`;
}

/** @param {{file: File, onCancel: () => void}} props */
function Upload({ file, onCancel }) {
  const look = useLoad(() => lookInto(file), [file]);
  const [columns, setColumns] = useState(/** @type {Record<string, string> | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [sending, setSending] = useState(false);
  if (look.error) return html`<${Problem} error=${look.error} /><p><button class="primary" onClick=${onCancel}>Choose another file</button></p>`;
  if (!look.value) return html`<p class="quiet">Looking into ${file.name} …</p>`;
  const chosen = columns ?? guess(look.value);
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setSending(true);
    setError(null);
    try {
      const dataset = await upload(file, /** @type {any} */ (look.value), chosen);
      say(`${dataset.n_documents} documents are there`);
      go("label", dataset.id);
    } catch (failure) {
      setError(failure);
      setSending(false);
    }
  };
  return html`
    <form class="card" onSubmit=${send}>
      <h2>${file.name}</h2>
      ${look.value.note && html`<${Notice}>${look.value.note}<//>`}
      ${look.value.kind === "table" && html`<${Columns} look=${look.value} chosen=${chosen} onChange=${setColumns} />`}
      ${look.value.rows.length > 0 && html`<${Preview} look=${look.value} chosen=${chosen} />`}
      ${look.value.kind === "documents" && html`<p>The file is sent as it is (${look.value.type}).</p>`}
      <${Problem} error=${error} />
      <p class="row"><button class="primary" disabled=${sending}>${sending ? "Sending …" : "Use these documents"}</button>
      <button type="button" onClick=${onCancel}>Choose another file</button></p>
    </form>`;
}

/** @param {{look: any, chosen: Record<string, string>, onChange: (columns: Record<string, string>) => void}} props */
function Columns({ look, chosen, onChange }) {
  const parts = { text: "Text", label: "Label, if some are known", id: "Id, if there is one" };
  return html`<div class="fields">
    ${Object.entries(parts).map(
      ([name, title]) => html`<label key=${name}>${title}
        <select name=${name} value=${chosen[name]} onChange=${(/** @type {any} */ event) => onChange({ ...chosen, [name]: event.target.value })}>
          ${name !== "text" && html`<option value="">none</option>`}
          ${look.columns.map((/** @type {string} */ column) => html`<option key=${column} value=${column}>${column}</option>`)}
        </select></label>`,
    )}
  </div>`;
}

/** @param {{look: any, chosen: Record<string, string>}} props */
function Preview({ look, chosen }) {
  const used = Object.values(chosen);
  const style = (/** @type {string} */ column) => (look.kind !== "table" || used.includes(column) ? "" : "quiet");
  return html`<${Scroll} label="First rows"><table>
    <thead><tr>${look.columns.map((/** @type {string} */ column) => html`<th class=${style(column)}>${column}</th>`)}</tr></thead>
    <tbody>${look.rows.map((/** @type {string[]} */ row) => html`<tr>${look.columns.map((/** @type {string} */ column, /** @type {number} */ k) => html`<td class=${style(column)}><span class="clip">${row[k]}</span></td>`)}</tr>`)}</tbody>
  </table><//>`;
}

/** @param {{listed: any[], onChange: () => void}} props */
function Datasets({ listed, onChange }) {
  const [removing, setRemoving] = useState("");
  const [error, setError] = useState(/** @type {any} */ (null));
  const remove = async (/** @type {any} */ dataset) => {
    try {
      await call("DELETE", `v1/datasets/${part(dataset.id)}`);
      if (project.value.dataset === dataset.id) change({ dataset: "", name: "", model: "" });
      say("Removed");
      setError(null);
      onChange();
    } catch (failure) {
      setError(failure);
    }
    setRemoving("");
  };
  return html`<${Problem} error=${error} /><ul class="list">
    ${listed.map(
      (dataset) => html`<li key=${dataset.id}>
        <div><b>${dataset.name ?? "without a name"}</b> <span class="quiet">${when(dataset.created_at)}</span><br />
        <span class="quiet">${counted(dataset.n_documents, "document")}, ${counted(dataset.n_labeled, "label")} in the file</span>
        ${dataset.warnings.filter((/** @type {string} */ warning) => warning !== "no document is labeled").slice(0, 2).map((/** @type {string} */ warning) => html`<br /><span class="quiet">${warning}</span>`)}</div>
        ${removing === dataset.id ? html`<div class="row"><span>Remove the documents and all labels of them?</span><button class="danger" onClick=${() => remove(dataset)}>Remove for good</button><button onClick=${() => setRemoving("")}>Keep</button></div>` : html`<div class="row"><button aria-label=${`Remove ${dataset.name ?? dataset.id}`} onClick=${() => setRemoving(dataset.id)}>Remove</button><a class="button" href=${to("label", dataset.id)}>Label</a></div>`}
      </li>`,
    )}
  </ul>`;
}

/** @param {File} file @param {import("./table.js").Look} look @param {Record<string, string>} chosen */
async function upload(file, look, chosen) {
  const body = look.kind === "lines" ? await documentsOfLines(file) : file;
  const query = new URLSearchParams({ name: datasetName(file.name) });
  if (look.kind === "table") for (const [name, column] of Object.entries(chosen)) query.set(name, column);
  /** @type {Record<string, string>} */
  const packed = isPacked(file) && look.kind !== "lines" ? { "Content-Encoding": "gzip" } : {};
  return call("POST", `v1/datasets?${query}`, body, { "Content-Type": look.type, ...packed });
}

/** The name of a file as the name of a dataset. @param {string} name */
function datasetName(name) {
  const plain = name.replace(/(\.[a-z]+)?(\.gz)?$/i, "").normalize("NFKD").replace(/[^A-Za-z0-9._-]+/g, "-");
  return plain.replace(/^[^A-Za-z0-9]+/, "").slice(0, 100) || "documents";
}
