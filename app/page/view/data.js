/** @file The data: drop a file, see what was understood, choose the columns; the datasets that there are. */

import { call, get, part } from "./api.js";
import { change, doubtful, open, project } from "./project.js";
import { go, to } from "./route.js";
import { send } from "./send.js";
import { toast } from "./toasts.js";
import { classLike, documentsOfLines, guess, indicators, isNumeric, isPacked, lookInto, named, withNames, withoutNames } from "./table.js";
import { Bar, Notice, Problem, Scroll, counted, html, percent, useEffect, useLoad, useRef, useState, when } from "./ui.js";

const SHOWN = 50, MOST = 500;
/** Rows and values that are shown of a file, and columns that may have the labels. */
const PREVIEWED = 5, MOST_ASKED = 3;
/** Characters of a name. */
const LONGEST_NAME = 100;
/** Between the names of columns for a label each: hardly a name has it. */
const SEPARATOR = "\t";

export function Data() {
  const [most, setMost] = useState(SHOWN);
  const datasets = useLoad(() => get("v1/datasets", { limit: most }), [most]);
  const [file, setFile] = useState(/** @type {File | null} */ (null));
  const listed = datasets.value?.datasets ?? [];
  const first = datasets.value !== null && !listed.length;
  return html`
    <h1>${first ? "Start with your documents" : "Data"}</h1>
    ${file ? html`<${Upload} file=${file} onCancel=${() => setFile(null)} />` : html`<${Drop} onFile=${setFile} first=${first} />`}
    <${Problem} error=${datasets.error} />
    ${listed.length > 0 && html`<section><h2>Datasets</h2><${Datasets} listed=${listed} onChange=${datasets.again} />
      ${datasets.value?.next_cursor && most < MOST && html`<p class="row"><button onClick=${() => setMost(MOST)}>Show older ones</button></p>`}</section>`}`;
}

/** @param {{onFile: (file: File) => void, first: boolean}} props */
function Drop({ onFile, first }) {
  const [over, setOver] = useState(false);
  const [many, setMany] = useState(false);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const drop = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(false);
    const files = event.dataTransfer?.files ?? [];
    setMany(files.length > 1);
    if (files.length === 1) onFile(files[0]);
  };
  return html`
    <div class=${`drop${over ? " over" : ""}${first ? "" : " again"}`} onDragOver=${(/** @type {Event} */ event) => (event.preventDefault(), setOver(true))} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <p><b>Drop a file here</b>, or</p>
      <button class="primary" onClick=${() => input.current?.click()}>Choose a file</button>
      <input ref=${input} id="file" class="unseen" type="file" tabindex="-1" aria-label="File with documents"
        onChange=${(/** @type {any} */ event) => event.target.files[0] && onFile(event.target.files[0])} />
      <p class="quiet">CSV, TSV, Excel (.xlsx), NDJSON, JSON, Parquet, Arrow, NumPy's npz, SVMlight, text with a document a line, or a zip of text files in folders named by class.</p>
      ${many && html`<${Notice} kind="error">One file at a time: put the documents into one table, a row each, or the files into a zip.<//>`}
      ${first && html`<p class="quiet">No labels are needed. You label a few, and the model learns from all.</p>`}
      <${Sample} first=${first} />
    </div>`;
}

/** The way to try it all without a file. @param {{first: boolean}} props */
function Sample({ first }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const begin = async () => {
    setBusy(true);
    try {
      const { sendSample } = await import("./sample.js");
      const dataset = await sendSample();
      await open(dataset);
      change({ tour: 0 });
      go("label", dataset.id);
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return html`<p><button class=${first ? "" : "small"} disabled=${busy} onClick=${begin}>${busy ? "Sending …" : "Take a tour with sample messages"}</button></p><${Problem} error=${error} />`;
}

/** @param {{file: File, onCancel: () => void}} props */
function Upload({ file, onCancel }) {
  const looked = useLoad(() => lookInto(file), [file]);
  const [turned, setTurned] = useState(/** @type {import("./table.js").Look | null} */ (null));
  const look = { ...looked, value: turned ?? looked.value };
  const [columns, setColumns] = useState(/** @type {Record<string, string> | null} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const [sent, setSent] = useState(/** @type {number | null} */ (null));
  const [several, setSeveral] = useState(false);
  const [unticked, setUnticked] = useState(/** @type {string[]} */ ([]));
  const stop = useRef(new AbortController()).current;
  useEffect(() => () => stop.abort(), []); // who goes to another view would be taken away from it when the file has arrived
  useEffect(() => {
    const ask = (/** @type {Event} */ event) => event.preventDefault();
    if (sent !== null) addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [sent !== null]);
  if (look.error) return html`<${Problem} error=${look.error} /><p><button class="primary" onClick=${onCancel}>Choose another file</button></p>`;
  if (!look.value) return html`<p class="quiet">Looking into ${file.name} …</p>`;
  const chosen = columns ?? guess(look.value);
  const each = several && look.value.kind === "table" && !chosen.label ? indicators(look.value).filter((column) => column !== chosen.text && column !== chosen.id) : [];
  const labels = each.filter((column) => !unticked.includes(column));
  const used = labels.length > 1 ? { ...chosen, labels: labels.join(SEPARATOR) } : chosen;
  const turn = () => {
    const now = /** @type {import("./table.js").Look} */ (look.value);
    setTurned(now.headless ? withNames(now) : withoutNames(now));
    setColumns(null);
  };
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setSent(0);
    setError(null);
    try {
      const dataset = await upload(file, /** @type {any} */ (look.value), used, several, setSent, stop.signal);
      toast(`${counted(dataset.n_documents, "document")} received`);
      go("label", dataset.id);
    } catch (/** @type {any} */ failure) {
      // of a person it is the file
      if (failure.status) failure.message = `${file.name}: ${failure.message}`;
      setError(failure);
      setSent(null);
    }
  };
  return html`
    <form class="card" onSubmit=${send}>
      <h2>${file.name}</h2>
      ${look.value.note && html`<${Notice}>${look.value.note}<//>`}
      ${look.value.headless !== undefined && html`<label class="row"><input type="checkbox" name="headless" checked=${look.value.headless} disabled=${look.value.headless && look.value.rows.length < 2} onChange=${turn} />The first row is a document, not the names of the columns</label>`}
      ${look.value.kind === "table" && html`<${Columns} look=${look.value} chosen=${chosen} onChange=${setColumns} />`}
      <label class="row"><input type="checkbox" name="several" checked=${several} onChange=${() => setSeveral(!several)} />A document may have several labels${several && chosen.label ? ", with semicolons between them" : ""}</label>
      ${each.length > 1 && html`<fieldset><legend>Columns for a label each, with 0 or 1</legend><div class="row">${each.map((column) => html`<label key=${column} class="row"><input type="checkbox" checked=${labels.includes(column)} onChange=${() => setUnticked(labels.includes(column) ? [...unticked, column] : unticked.filter((other) => other !== column))} />${column}</label>`)}</div></fieldset>`}
      ${look.value.kind === "table" && !chosen.label && html`<${Labels} found=${classLike(look.value, chosen)} onChoose=${(/** @type {string} */ label) => setColumns({ ...chosen, label })} />`}
      ${look.value.rows.length > 0 && html`<${Preview} look=${look.value} chosen=${used} />`}
      ${look.value.kind === "documents" && html`<p>The service reads this file (${look.value.type}) by itself.</p>`}
      ${look.value.kind === "table" && isNumeric(look.value, chosen.text) && html`<${Notice}>The column <b>${chosen.text}</b> has numbers alone. Is it the text?<//>`}
      <${Problem} error=${error} />
      ${/** @type {("label" | "id")[]} */ (["label", "id"]).map((name) => chosen[name] && error?.faults?.some((/** @type {any} */ fault) => fault.field === name) && html`<p>Is <b>${chosen[name]}</b> the column of the ${name}s? Choose another one, or none.</p>`)}
      ${sent !== null && html`<${Bar} strong label="sending" share=${sent} text=${sent < 1 ? percent(sent) : "the service reads it"} />`}
      <p class="row"><button class="primary" disabled=${sent !== null}>Use these documents</button>
      <button type="button" onClick=${() => (stop.abort(), onCancel())}>${sent === null ? "Choose another file" : "Cancel"}</button></p>
    </form>`;
}

/** @param {{look: any, chosen: Record<string, string>, onChange: (columns: Record<string, string>) => void}} props */
function Columns({ look, chosen, onChange }) {
  const parts = { text: "Text", label: "Label, if some are known", id: "Id, if there is one" };
  return html`<div class="fields">
    ${Object.entries(parts).map(
      ([name, title]) => html`<label key=${name}>${title}
        <select name=${name} value=${chosen[name]} onChange=${(/** @type {any} */ event) => onChange({ ...chosen, [name]: event.target.value })}>
          ${name !== "text" && html`<option value="">${name === "id" ? "no column: documents are numbered" : "no column"}</option>`}
          ${look.columns.map((/** @type {string} */ column) => html`<option key=${column} value=${column}>${column}</option>`)}
        </select></label>`,
    )}
  </div>`;
}

/** @param {{look: any, chosen: Record<string, string>}} props */
function Preview({ look, chosen }) {
  const used = [...Object.values(chosen), ...(chosen.labels ?? "").split(SEPARATOR)];
  const isUsed = (/** @type {number} */ k) => look.kind !== "table" || used.includes(look.columns[k]) || look.columns[k].startsWith("vote:");
  // what is chosen comes first: of a hundred columns the others are out of sight
  const places = [...look.columns.keys()].sort((one, other) => Number(isUsed(other)) - Number(isUsed(one)));
  const style = (/** @type {number} */ k) => (isUsed(k) ? "" : "quiet");
  return html`<${Scroll} label="First rows"><table>
    <thead><tr>${places.map((k) => html`<th class=${style(k)}>${look.columns[k]}</th>`)}</tr></thead>
    <tbody>${look.rows.slice(0, PREVIEWED).map((/** @type {string[]} */ row) => html`<tr>${places.map((k) => html`<td class=${style(k)}><span class=${look.columns[k] === chosen.text ? "lines" : "clip"} dir="auto">${row[k]}</span></td>`)}</tr>`)}</tbody>
  </table><//>`;
}

/** Columns that may have the labels, where none is chosen. @param {{found: [string, string[]][], onChoose: (column: string) => void}} props */
function Labels({ found, onChoose }) {
  if (!found.length) return null;
  return html`<${Notice}><div class="row">Has one of these columns the labels? ${found.slice(0, MOST_ASKED).map(([column, values]) => html`<button key=${column} type="button" class="small" onClick=${() => onChoose(column)}><b>${column}</b><span class="clip">${values.slice(0, PREVIEWED).join(", ")}${values.length > PREVIEWED ? " …" : ""}</span></button>`)}</div><//>`;
}

/** @param {{listed: any[], onChange: () => void}} props */
function Datasets({ listed, onChange }) {
  const [all, setAll] = useState(false);
  const away = listed.filter((each) => each.archived).length;
  return html`<ul class="list">${listed.filter((each) => all || !each.archived).map((dataset, k) => html`<${One} key=${dataset.id} dataset=${dataset} newest=${k === 0} onChange=${onChange} />`)}</ul>
    ${away > 0 && html`<p class="row"><button onClick=${() => setAll(!all)}>${all ? "Hide" : "Show"} ${counted(away, "archived dataset")}</button></p>`}`;
}

/** @param {{dataset: any, newest: boolean, onChange: () => void}} props */
function One({ dataset, newest, onChange }) {
  const [asking, setAsking] = useState(/** @type {"" | "rename" | "remove"} */ (""));
  const [error, setError] = useState(/** @type {any} */ (null));
  const path = `v1/datasets/${part(dataset.id)}`;
  const summary = useLoad(() => get(`${path}/annotations/summary`), [dataset.id]);
  const name = dataset.name ?? "without a name";
  const answers = Object.values(summary.value?.people ?? {}).reduce((sum, count) => sum + count, 0);
  const done = (/** @type {Promise<any>} */ change, /** @type {string} */ text, /** @type {(() => void) | undefined} */ undo = undefined) => change.then(() => (setError(null), toast(text, undo), onChange()), setError).then(() => setAsking(""));
  const patch = (/** @type {any} */ changes, /** @type {string} */ text, /** @type {any} */ back) => done(call("PATCH", path, changes), text, back && (() => patch(back, "Taken back", null)));
  const remove = () => done(call("DELETE", path).then(() => project.value.dataset === dataset.id && change({ dataset: "", name: "", model: "" })), `${name} is removed`);
  const put = () => patch({ archived: !dataset.archived }, dataset.archived ? `${name} is back` : `${name} is archived`, { archived: dataset.archived });
  return html`<li><div class="wide"><b>${name}</b> ${dataset.archived && html`<span class="tag">archived</span>`} <span class="quiet date">${when(dataset.created_at)}</span><br />
      <span class="quiet">${counted(dataset.n_documents, "document")}, ${summary.value ? counted(summary.value.labeled, "label") : "…"}${dataset.n_labeled > 0 && ` (${dataset.n_labeled.toLocaleString("en")} in the file)`}</span>
      ${doubtful(dataset).slice(0, 2).map((warning) => html`<br /><span class="quiet">${warning}</span>`)}<${Problem} error=${error} />
      ${asking === "rename" && html`<${Rename} name=${dataset.name ?? ""} onName=${(/** @type {string} */ given) => patch({ name: given }, `${name} is ${given} now`, dataset.name && { name: dataset.name })} onClose=${() => setAsking("")} />`}</div>
    ${asking === "remove" ? html`<div class="row"><span>Remove the documents${answers > 0 && ` and ${counted(answers, "answer")} of people`}? This cannot be taken back.</span><button class="danger" onClick=${remove}>Remove for good</button><button onClick=${() => setAsking("")}>Keep</button></div>` : html`<div class="row"><a class=${newest ? "button primary" : "button"} href=${to("label", dataset.id)}>Label</a><a class="button" href=${to("documents", dataset.id)}>Documents</a><button aria-label=${`Rename ${name}`} onClick=${() => setAsking("rename")}>Rename</button><button aria-label=${`${dataset.archived ? "Bring back" : "Archive"} ${name}`} onClick=${put}>${dataset.archived ? "Bring back" : "Archive"}</button><button aria-label=${`Remove ${name}`} onClick=${() => setAsking("remove")}>Remove</button></div>`}</li>`;
}

/** @param {{name: string, onName: (name: string) => void, onClose: () => void}} props */
function Rename({ name, onName, onClose }) {
  const [text, setText] = useState(name);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => field.current?.focus(), []);
  const keep = (/** @type {Event} */ event) => (event.preventDefault(), onName(text.trim()));
  return html`<form class="row" onSubmit=${keep}><input ref=${field} required maxlength="100" aria-label="Name" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && onClose()} /><button>Save</button><button type="button" onClick=${onClose}>Cancel</button></form>`;
}

/** @param {File} file @param {import("./table.js").Look} look @param {Record<string, string>} chosen @param {boolean} several
 * @param {(share: number) => void} onSent
 * @param {AbortSignal} signal */
async function upload(file, look, chosen, several, onSent, signal) {
  const body = look.kind === "lines" ? await documentsOfLines(file, look.charset) : look.headless ? await named(file, look) : look.body ?? file;
  const query = new URLSearchParams({ name: datasetName(file.name) });
  if (look.kind === "table") for (const [name, column] of Object.entries({ ...chosen, extra: "keep" })) if (!several || name !== "label" || !column) query.set(name, column);
  if (several && chosen.label) query.set("labels", chosen.label), query.set("label", "");
  if (chosen.labels) query.set("separator", SEPARATOR);
  /** @type {Record<string, string>} */
  const packed = isPacked(file) && body === file ? { "Content-Encoding": "gzip" } : {};
  const dataset = await send(`v1/datasets?${query}`, body, { "Content-Type": look.type, ...packed }, onSent, signal);
  if (!several || dataset.label_kind === "several") return dataset;
  // the documents are stored once: the dataset of one label each goes, its twin of several stays
  const twin = await call("PUT", `v1/datasets/${part(dataset.id)}/labels`, { label_kind: "several" });
  await call("DELETE", `v1/datasets/${part(dataset.id)}`);
  return twin;
}

/** The name of a file as the name of a dataset. @param {string} name */
const datasetName = (name) => name.replace(/(\.[a-z]+)?(\.gz)?$/i, "").trim().slice(0, LONGEST_NAME).trim() || "documents";
