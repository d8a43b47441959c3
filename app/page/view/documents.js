/** @file All documents in a table: search, filters, order; a click opens one, and its label can be changed. */

import { Answers } from "./answers.js";
import { get, modelOf, part } from "./api.js";
import { useClasses } from "./classes.js";
import { Opened, hits, isSeveral, labelsOf, marked, snippet, worded } from "./document.js";
import { Download } from "./download.js";
import { outboxOf, Saved } from "./outbox.js";
import { project } from "./project.js";
import { Several } from "./several.js";
import { toast } from "./toasts.js";
import { AGAIN, BUSY, Empty, PASSING, Problem, Scroll, counted, html, percent, reading, useEffect, useLoad, useState } from "./ui.js";

const PAGE = 50;
const STATES = { "": "any state", labeled: "with a label", unlabeled: "without a label", skipped: "skipped" };
const ORDERS = { position: "as in the file", random: "in random order", least_certain: "the least certain first", likeliest: "the surest first" };
const BOUNDS = { 1: "any probability", 0.95: "below 95%", 0.8: "below 80%", 0.6: "below 60%" };

/** @typedef {{contains: string, state: string, label: string, by: string, predicted: string, order: string, at_most: number, disagreement: boolean, flagged: boolean, mistaken: boolean}} Filters */

/** @type {Filters} */
const ALL = { contains: "", state: "", label: "", by: "", predicted: "", order: "position", at_most: 1, disagreement: false, flagged: false, mistaken: false };

/** The filters that were set last for a dataset: who comes back finds them. @type {Map<string, Filters>} */
const last = new Map();

/** @param {{dataset: any, query: URLSearchParams}} props */
export function Documents({ dataset, query }) {
  const [filters, setFilters] = useState(query.size ? { ...ALL, state: query.get("state") ?? "", disagreement: query.has("disagreement"), flagged: query.has("flagged") } : (last.get(dataset.id) ?? ALL));
  last.set(dataset.id, filters);
  const classes = useClasses(dataset.id);
  const outbox = outboxOf(dataset.id);
  const base = useLoad(async () => {
    const [model, summary] = await Promise.all([modelOf(project.value.model), get(`v1/datasets/${part(dataset.id)}/annotations/summary`)]);
    const served = model?.versions.find((/** @type {any} */ each) => each.version === model.served);
    return { version: served?.dataset === dataset.id ? served : null, people: Object.keys(summary.people).filter(Boolean) };
  }, [dataset.id, project.value.model]);
  const { listed, next, total, error, loading, more, replace } = useRows(dataset.id, filters, base.value ? (base.value.version?.name ?? "") : null);
  const [opened, setOpened] = useState(-1);
  const change = (/** @type {number} */ row, /** @type {any} */ label) => {
    const document = listed[row];
    const by = project.value.by || undefined;
    const given = Array.isArray(label) ? { labels: label } : { label };
    // of three people the majority would stand against a label that is changed in view of it
    const action = Object.keys(document.people).some((person) => person !== (by ?? "")) ? "settle" : "label";
    outbox.add({ document: document.id, ...given, action, mode: "assisted", by });
    replace(row, { ...document, ...given, by: by ?? "", people: { ...document.people, [by ?? ""]: label } });
    toast(`${document.id} is ${worded(label)}`, () => {
      outbox.add({ document: document.id, action: "undo", by });
      replace(row, document);
    });
  };
  const current = listed[opened];
  return html`<h1>Documents</h1>
    <${Filter} filters=${filters} onChange=${setFilters} classes=${classes.listed.value} people=${base.value?.people ?? []} version=${base.value?.version} />
    <${Download} dataset=${dataset} model=${base.value?.version?.name} />
    <p class="row quiet"><span role="status">${loading ? (ofModel(filters) ? reading(dataset.n_documents) : "Looking …") : found(listed.length, next, total)}</span><${Saved} outbox=${outbox} /></p>
    <${Problem} error=${error ?? base.error ?? classes.error.value} />
    ${outbox.refused.value.map((text) => html`<${Problem} key=${text} error=${{ message: text }} />`)}
    ${listed.length > 0 && html`<${Scroll} label="Documents"><table class="stacked documents"><thead><tr><th>Document</th><th>Label</th><th>By</th>${base.value?.version && html`<th>Predicted</th>`}</tr></thead>
      <tbody>${listed.map((each, row) => html`<${Row} key=${each.id} document=${each} find=${filters.contains} classes=${classes.listed.value} predicting=${Boolean(base.value?.version)} onOpen=${() => setOpened(row)} onChange=${(/** @type {any} */ label) => change(row, label)} />`)}</tbody></table><//>`}
    ${!listed.length && !loading && html`<${Empty} title="No document is like this"><button onClick=${() => setFilters(ALL)}>Show all</button><//>`}
    ${next && listed.length > 0 && html`<p><button onClick=${more} disabled=${loading}>Show more</button></p>`}
    ${current && html`<${Opened} key=${current.id} document=${current} find=${filters.contains} onClose=${() => setOpened(-1)}>
      <${Said} document=${current} />${!isSeveral(current) ? html`<${Answers} classes=${classes.listed.value} guess=${current.label} onLabel=${(/** @type {any} */ label) => (change(opened, label), setOpened(opened + 1))} />` : html`<${Picks} classes=${classes.listed.value} labels=${current.labels ?? []} onConfirm=${(/** @type {any[]} */ labels) => (change(opened, labels), setOpened(opened + 1))} />`}<//>`}`;
}

/** The several labels of a document that is read. @param {{classes: import("./classes.js").Class[], labels: any[], onConfirm: (labels: any[]) => void}} props */
function Picks({ classes, labels, onConfirm }) {
  const [picked, setPicked] = useState(labels);
  return html`<${Several} classes=${classes} picked=${picked} onPick=${setPicked} onConfirm=${() => onConfirm(picked)} />`;
}

/** Whether people gave a document different labels. @param {any} document */
function isDisputed(document) {
  return new Set(Object.values(document.people).map((/** @type {any} */ label) => worded([label].flat().sort()))).size > 1;
}

/** The votes about a document. @param {{votes?: Record<string, any>}} props */
function Votes({ votes }) {
  const cast = Object.entries(votes ?? {});
  if (!cast.length) return null;
  const said = (/** @type {any} */ vote) => (typeof vote === "object" ? Object.entries(vote).map(([label, share]) => `${label} ${percent(share)}`).join(", ") : vote);
  return html`<p class="quiet">Votes: ${cast.map(([voter, vote], k) => html`${k > 0 && "; "}${voter}: <b><bdi>${said(vote)}</bdi></b>`)}</p>`;
}

/** What people and the model say of a document. @param {{document: any}} props */
function Said({ document }) {
  const votes = Object.entries(document.people), known = labelsOf(document);
  return html`<p class="quiet">${votes.length ? votes.map(([person, label], k) => html`${k > 0 && ", "}${person || "somebody"}: <b><bdi>${worded(label)}</bdi></b>`) : known ? html`In the file it is <b><bdi>${worded(isSeveral(document) ? known : document.label)}</bdi></b>` : "Nobody has labeled it"}${document.predicted !== undefined && html`. The model: <${Predicted} document=${document} />`}</p><${Votes} votes=${document.votes} />`;
}

/** What a model says of a document: its label, or all of several, and how likely the likeliest is. @param {{document: any}} props */
function Predicted({ document: { predicted, predicted_labels: labels = [predicted], probability } }) {
  return html`<bdi>${worded(labels)}</bdi> <span class="quiet">${typeof probability === "number" && html`${labels.length !== 1 && html`<bdi>${predicted}</bdi> `}${percent(probability)}`}</span>`;
}

/** Whether it takes what the model says of all documents. @param {Filters} filters */
const ofModel = ({ predicted, order, at_most, mistaken }) => Boolean(predicted) || at_most < 1 || mistaken || ["likeliest", "least_certain"].includes(order);

/** @param {number} shown @param {string | null} next @param {number | null} total */
function found(shown, next, total) {
  if (total !== null) return counted(total, "document");
  return next ? `${counted(shown, "document")} so far, and more to look at` : counted(shown, "document");
}

/** The rows of a query, a page after the other. @param {string} dataset @param {Filters} filters @param {string | null} model null: not known yet */
function useRows(dataset, filters, model) {
  const [state, setState] = useState({ listed: /** @type {any[]} */ ([]), next: /** @type {string | null} */ (null), total: /** @type {number | null} */ (null), error: /** @type {any} */ (null), loading: true });
  const key = JSON.stringify([filters, model]);
  const fetch = async (/** @type {string | null} */ cursor) => {
    const asked = { ...filters, model, limit: PAGE, cursor, at_most: filters.at_most < 1 ? filters.at_most : undefined };
    const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== false && value !== "position"));
    return get(`v1/datasets/${part(dataset)}/documents`, given);
  };
  useEffect(() => {
    if (model === null) return;
    let current = true, timer = 0;
    // what the filters left out must not stand there for seconds
    setState((before) => ({ ...before, listed: ofModel(filters) ? [] : before.listed, loading: true }));
    const shown = (/** @type {any} */ { documents, next, total }) => current && setState({ listed: documents, next, total, error: null, loading: false });
    const failed = (/** @type {any} */ error) => {
      const passing = PASSING.includes(error.status);
      setState((before) => ({ ...before, error: error.status === BUSY ? null : error, loading: passing }));
      if (passing) timer = setTimeout(load, AGAIN);
    };
    const load = () => fetch(null).then(shown, (error) => current && failed(error));
    load();
    return () => ((current = false), clearTimeout(timer));
  }, [dataset, key]);
  const more = async () => {
    setState((before) => ({ ...before, loading: true }));
    try {
      const { documents, next } = await fetch(state.next);
      setState((before) => ({ ...before, listed: [...before.listed, ...documents], next, loading: false }));
    } catch (error) {
      setState((before) => ({ ...before, error, loading: false }));
    }
  };
  const replace = (/** @type {number} */ row, /** @type {any} */ document) => setState((before) => ({ ...before, listed: before.listed.map((each, k) => (k === row ? document : each)) }));
  return { ...state, more, replace };
}

/** @param {{filters: Filters, onChange: (filters: Filters) => void, classes: import("./classes.js").Class[], people: string[], version: any}} props */
function Filter({ filters, onChange, classes, people, version }) {
  const [text, setText] = useState(filters.contains);
  const set = (/** @type {Partial<Filters>} */ changes) => onChange({ ...filters, ...changes });
  const search = (/** @type {Event} */ event) => (event.preventDefault(), set({ contains: text.trim() }));
  const names = classes.map(({ name }) => [String(name), String(name)]);
  return html`<form class="row filters" role="search" onSubmit=${search}><input type="search" name="search" value=${text} placeholder="search in the texts" aria-label="Search in the texts" onInput=${(/** @type {any} */ event) => setText(event.target.value)} /><button>Search</button>
    <${Choice} title="State" value=${filters.state} options=${Object.entries(STATES)} onChange=${(/** @type {string} */ state) => set({ state })} />
    <${Choice} title="Label" value=${filters.label} options=${[["", "any label"], ...names]} onChange=${(/** @type {string} */ label) => set({ label })} />
    ${people.length > 0 && html`<${Choice} title="Person" value=${filters.by} options=${[["", "anybody"], ...people.map((each) => [each, each])]} onChange=${(/** @type {string} */ by) => set({ by })} />`}
    ${version && html`<${Choice} title="Predicted" value=${filters.predicted} options=${[["", "any prediction"], ...version.classes.map((/** @type {any} */ each) => [String(each), String(each)])]} onChange=${(/** @type {string} */ predicted) => set({ predicted })} />
      <${Choice} title="Probability" value=${filters.at_most} options=${Object.entries(BOUNDS).reverse()} onChange=${(/** @type {string} */ bound) => set({ at_most: Number(bound) })} />`}
    <${Choice} title="Order" value=${filters.order} options=${Object.entries(ORDERS).slice(0, version ? undefined : 2)} onChange=${(/** @type {string} */ order) => set({ order })} />
    <${Check} title="people disagree" value=${filters.disagreement} onChange=${(/** @type {boolean} */ disagreement) => set({ disagreement })} />
    <${Check} title="marked" value=${filters.flagged} onChange=${(/** @type {boolean} */ flagged) => set({ flagged })} />
    ${version && html`<${Check} title="the model disagrees" value=${filters.mistaken} onChange=${(/** @type {boolean} */ mistaken) => set({ mistaken })} />`}</form>`;
}

/** @param {{title: string, value: any, options: string[][], onChange: (value: string) => void}} props */
function Choice({ title, value, options, onChange }) {
  return html`<select aria-label=${title} value=${value} onChange=${(/** @type {any} */ event) => onChange(event.target.value)}>${options.map(([key, name]) => html`<option key=${key} value=${key}>${name}</option>`)}</select>`;
}

/** @param {{title: string, value: boolean, onChange: (value: boolean) => void}} props */
function Check({ title, value, onChange }) {
  return html`<label class="row"><input type="checkbox" checked=${value} onChange=${(/** @type {any} */ event) => onChange(event.target.checked)} />${title}</label>`;
}

/** @param {{document: any, find: string, classes: import("./classes.js").Class[], predicting: boolean, onOpen: () => void, onChange: (label: any) => void}} props */
function Row({ document, find, classes, predicting, onOpen, onChange }) {
  const text = snippet(document);
  const place = classes.findIndex(({ name }) => name === document.label);
  const disputed = isDisputed(document);
  return html`<tr><td><button class="text" aria-label=${`Read ${document.id}`} onClick=${onOpen}><span class="lines" dir="auto">${marked(text, find ? hits(text, find) : [])}</span></button>${document.flagged && html`<span class="tag bad">marked</span>`}</td>
    <td data-head="Label">${isSeveral(document) ? html`<button class="small" aria-label=${`Labels of ${document.id}`} onClick=${onOpen}>${labelsOf(document) === null ? (document.skipped ? "skipped" : "not known") : worded(document.labels)}</button>` : html`<select aria-label=${`Label of ${document.id}`} value=${place} onChange=${(/** @type {any} */ event) => onChange(classes[event.target.value].name)}>${place < 0 && html`<option value="-1">${document.skipped ? "skipped" : "none"}</option>`}${classes.map(({ name }, k) => html`<option key=${name} value=${k}>${name}</option>`)}</select>`}</td>
    <td data-head="By" class=${disputed || document.by ? "" : "blank"}><span class="clip">${disputed ? Object.entries(document.people).map(([person, label]) => `${person || "?"}: ${worded(label)}`).join(", ") : (document.by ?? "")}</span></td>
    ${predicting && html`<td data-head="Predicted"><span><${Predicted} document=${document} /></span></td>`}</tr>`;
}
