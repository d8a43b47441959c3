/** @file All of one class at once: the likeliest fifty, take out the wrong ones, Enter. A twentieth comes again later, one by one. */

import { comeAgain, forgetChecks, verdict } from "./again.js";
import { KEYED } from "./answers.js";
import { get, modelOf, part } from "./api.js";
import { REST, useClasses } from "./classes.js";
import { Opened, snippet } from "./document.js";
import { outboxOf } from "./outbox.js";
import { identifier, ownPart, project } from "./project.js";
import { to } from "./route.js";
import { toast } from "./toasts.js";
import { Empty, Key, Problem, counted, html, percent, reading, say, useEffect, useKeys, useLoad, useRef, useState } from "./ui.js";

const MOST = 50;
const AGAIN = 0.05;
/** Documents of one answer of the service. */
const MOST_LISTED = 500;

/** @param {{parts: string[], dataset: any}} props */
export function Batch({ parts, dataset: { label_kind, n_documents } }) {
  const dataset = parts[0];
  const model = useLoad(() => modelOf(project.value.model), [project.value.model]);
  const [label, setLabel] = useState(/** @type {string | null} */ (null));
  const classes = useClasses(dataset);
  const choose = (/** @type {string} */ name) => {
    setLabel(name);
    // the button would take the Enter that confirms
    document.querySelector("main")?.focus();
  };
  useKeys((event) => {
    const found = classes.listed.value.find(({ key }) => key === event.key);
    if (found && served?.classes.includes(found.name)) choose(String(found.name));
  });
  const served = model.value?.versions.find((/** @type {any} */ each) => each.version === model.value.served);
  if (label_kind === "several") return html`<h1>One class at a time</h1><${Empty} title="These documents may have several classes"><p>One class says nothing of the others, so they are answered one by one.</p><a class="button primary" href=${to("label", dataset)}>Label</a><//>`;
  if (model.error) return html`<h1>One class at a time</h1><${Problem} error=${model.error} />`;
  if (model.loaded && !served) return html`<h1>One class at a time</h1><${Empty} title="There is no model yet"><p>Label some documents first: the model learns from them.</p><a class="button primary" href=${to("label", dataset)}>Label</a><//>`;
  if (!served) return html`<h1>One class at a time</h1><p class="quiet">Loading …</p>`;
  // who labels one class alone looks for more of it
  const chosen = label ?? String(served.classes.find((/** @type {any} */ each) => each !== REST) ?? REST);
  const of = (/** @type {string} */ name) => served.classes.find((/** @type {any} */ each) => String(each) === name);
  const keyOf = (/** @type {any} */ name) => classes.listed.value.find((each) => each.name === name)?.key;
  return html`<h1>One class at a time</h1>
    <p>The documents of which the model is the surest. Take out the wrong ones, then confirm the others. <${Key}>r<//> reads the one that you are at.</p>
    ${served.classes.length > KEYED ? html`<label>Class <select name="class" value=${chosen} onChange=${(/** @type {any} */ event) => setLabel(event.target.value)}>${served.classes.map((/** @type {any} */ each) => html`<option key=${each} value=${String(each)}>${each}</option>`)}</select></label>` : html`<div class="row" role="group" aria-label="Class">${served.classes.map((/** @type {any} */ each) => html`<button key=${each} aria-pressed=${String(each) === chosen} onClick=${() => choose(String(each))}>${keyOf(each) && html`<${Key}>${keyOf(each)}<//>`}<span class="clip" dir="auto">${each}</span></button>`)}</div>`}
    <${Sheet} key=${chosen} dataset=${dataset} count=${n_documents} label=${of(chosen)} sources=${[{ dataset, model: project.value.model, predicted: of(chosen) }]} />`;
}

/** Documents to which a model gives one of its classes; it may have been trained on some of the documents alone, in a dataset of their own.
 * @typedef {{dataset: string, model: string, predicted: any}} Source */

/** Documents to confirm together. @param {{dataset: string, count: number, label: any, sources: Source[]}} props `count`: of all documents */
export function Sheet({ dataset, count, label, sources }) {
  const page = useLoad(() => outboxOf(dataset).settled().then(() => likeliest(dataset, label, sources)), [dataset, label, JSON.stringify(sources)]);
  const [sending, setSending] = useState(false);
  const last = useRef(/** @type {(() => void) | null} */ (null));
  const [opened, setOpened] = useState(/** @type {any} */ (null));
  const [out, setOut] = useState(/** @type {Set<string>} */ (new Set()));
  const listed = page.value ?? [];
  useEffect(() => (setOut(new Set()), setSending(false)), [page.value]);
  const toggle = (/** @type {string} */ id) => setOut((before) => new Set(before.has(id) ? [...before].filter((each) => each !== id) : [...before, id]));
  const confirm = () => {
    if (sending) return;
    const kept = listed.filter((/** @type {any} */ each) => !out.has(each.id));
    if (!kept.length) return say("There is nothing to confirm");
    const back = Math.min(kept.length, Math.max(1, Math.round(AGAIN * kept.length)));
    const again = shuffled(kept).slice(0, back).map(({ id }) => id);
    comeAgain(dataset, again, label);
    const outbox = outboxOf(dataset), batch = identifier();
    const ids = kept.flatMap(({ id, twins }) => [id, ...twins]);
    for (const id of ids) outbox.add({ document: id, label, batch, drawn: "found", mode: "assisted", by: project.value.by || undefined });
    const undo = () => {
      outbox.takeBack(batch);
      forgetChecks(dataset, again);
      say("Taken back");
      page.again();
    };
    last.current = undo;
    toast(`${counted(ids.length, "document")} confirmed as ${label}`, undo);
    for (const each of listed.filter(({ id }) => out.has(id))) for (const id of [each.id, ...each.twins]) takenOut(dataset, label).add(id);
    setSending(true);
    page.again();
    document.querySelector("main")?.focus();
  };
  useKeys((event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key === "Enter" && listed.length && !target.closest("button, a")) event.preventDefault(), confirm();
    if (event.key === "u" && last.current) last.current(), (last.current = null);
    // a button a card beside its box would be twice as many steps for who has no mouse
    const place = event.key === "r" ? [...document.querySelectorAll(".sheet li")].findIndex((each) => each.contains(target)) : -1;
    if (place >= 0) setOpened(listed[place]);
  });
  if (page.error) return html`<${Problem} error=${page.error} />`;
  if (!page.value) return html`<p class="quiet beneath" role="status">${reading(count)}</p>`;
  if (!listed.length) return html`<${Empty} title="No more documents of this class"><p>The model finds none like <bdi>${label}</bdi> among the open documents.</p><//>`;
  return html`${opened && html`<${Opened} document=${opened} onClose=${() => setOpened(null)} />`}<ul class="sheet">${listed.map((/** @type {any} */ each) => html`<li key=${each.id}><label class=${out.has(each.id) ? "out" : ""}><input type="checkbox" checked=${!out.has(each.id)} onChange=${() => toggle(each.id)} /><span class="lines" dir="auto">${snippet(each)}</span><span class="quiet number">${each.twins.length > 0 && html`<span class="tag" title="the same text so many times: one answer for all">× ${1 + each.twins.length}</span> `}${percent(each.probability, 1)}</span></label><button class="small open" tabindex="-1" aria-label=${`Read ${each.id}`} onClick=${(/** @type {any} */ event) => (event.currentTarget.closest("li").querySelector("input").focus(), setOpened(each))}>Read</button></li>`)}</ul>
    <p class="row dock"><button class="primary" onClick=${confirm} disabled=${sending}><${Key}>Enter<//> ${counted(size(listed.filter((/** @type {any} */ each) => !out.has(each.id))), "document")} as <bdi>${label}</bdi></button><span class="quiet">${verdict(dataset) || "Some come again later, one by one, to see how well this went."}</span></p>`;
}

/** What was taken out of each class: it would come again with the next ones, and be confirmed by mistake. @type {Map<string, Set<string>>} */
const taken = new Map();

/** @param {string} dataset @param {any} label @returns {Set<string>} */
function takenOut(dataset, label) {
  const key = `${dataset} ${label}`;
  const found = taken.get(key) ?? new Set();
  taken.set(key, found);
  return found;
}

/** Number of documents, the same texts counted each. @param {{twins: string[]}[]} listed */
const size = (listed) => listed.reduce((sum, { twins }) => sum + 1 + twins.length, 0);

/** The likeliest open documents of the sources but those that were taken out, the same texts joined: `twins` are the ids of the others. @param {string} dataset @param {any} label @param {Source[]} sources */
async function likeliest(dataset, label, sources) {
  const out = takenOut(dataset, label);
  const limit = Math.min(MOST_LISTED, MOST + out.size);
  const found = await Promise.all(sources.map((source) => openOf(dataset, source, limit)));
  const documents = found.flat().sort((one, other) => other.probability - one.probability);
  const joined = new Map();
  for (const each of documents.filter((/** @type {any} */ each) => !out.has(each.id)).slice(0, MOST)) {
    const content = each.text?.trim().replace(/\s+/g, " ").toLowerCase() ?? each.id;
    const first = joined.get(content);
    if (first) first.twins.push(each.id);
    else joined.set(content, { ...each, twins: [] });
  }
  return [...joined.values()];
}

/** The likeliest documents of a source that are open in the dataset. @param {string} dataset @param {Source} source @param {number} limit @returns {Promise<any[]>} */
async function openOf(dataset, { dataset: own, model, predicted }, limit) {
  const query = { model, predicted, order: "likeliest", limit };
  if (own === dataset) return (await get(`v1/datasets/${part(own)}/documents`, { ...query, state: "open", ...ownPart() })).documents;
  const { documents } = await get(`v1/datasets/${part(own)}/documents`, query);
  if (!documents.length) return [];
  const ids = JSON.stringify(documents.map((/** @type {any} */ each) => each.id));
  const now = await get(`v1/datasets/${part(dataset)}/documents`, { ids, limit });
  const left = new Set(now.documents.flatMap((/** @type {any} */ each) => ((each.label ?? null) !== null || each.skipped ? [] : [each.id])));
  return documents.filter((/** @type {any} */ each) => left.has(each.id));
}

/** The same in random order (Fisher and Yates). @template T @param {T[]} listed */
function shuffled(listed) {
  const found = [...listed];
  for (let k = found.length - 1; k > 0; k -= 1) {
    const other = Math.floor(Math.random() * (k + 1));
    [found[k], found[other]] = [found[other], found[k]];
  }
  return found;
}
