/** @file One version: how good it is, what it gets wrong, what it goes by, class by class. */

import { get, part, post } from "./api.js";
import { snippet } from "./document.js";
import { Sentence, qualityOf } from "./quality.js";
import { to } from "./route.js";
import { Bar, Notice, Problem, Scroll, counted, html, percent, sentence, useLoad, when } from "./ui.js";

const MOST_CLASSES = 30;
const MOST_MISTAKES = 10;

/** @param {{parts: string[]}} props */
export function Model({ parts }) {
  const [name, number] = parts;
  const path = `v1/models/${part(name)}/versions/${part(number)}`;
  const version = useLoad(() => get(path), [path]);
  const dataset = useLoad(async () => (version.value ? stillThere(version.value) : null), [version.value]);
  const explained = useLoad(() => post(`${path}/explain`, { n: 12 }), [path]);
  if (version.error) return html`<h1>${name}</h1><${Problem} error=${version.error} /><p><a href=${to("models")}>All models</a></p>`;
  if (!version.value) return html`<h1>${name}</h1><p class="quiet">Loading …</p>`;
  const { confidence, comparison } = version.value;
  return html`<h1>${name}, version ${number}</h1>
    <p class="quiet">trained ${when(version.value.created_at)} by ${version.value.algorithm}, ${counted(version.value.classes.length, "class")} · <a href=${to("try", `${name}/${number}`)}>try it</a></p>
    ${confidence === "none" && html`<${Notice} kind="error">It knows no more than chance would. More labels are needed.<//>`}
    ${dataset.value && html`<${Sentence} quality=${qualityOf(version.value, dataset.value.audit)} />`}
    ${comparison && html`<p>${sentence(comparison.why)}.</p>`}
    ${dataset.value?.dataset && dataset.value.labeled > 0 && html`${version.value.label_kind !== "several" && html`<${Mistakes} dataset=${dataset.value.dataset} name=${name} number=${number} />`}<${Evaluation} path=${path} dataset=${dataset.value.dataset} />`}
    <section><h2>What it goes by</h2><p>${version.value.facts.encoder ? "The meaning of the texts, as an encoder reads it, and these terms:" : "Terms with the largest weights."}</p><${Problem} error=${explained.error} />
    ${explained.value && html`<${Weights} explained=${explained.value} />`}</section>`;
}

/** The dataset with the number of its labels and what its last audit says of a version, both null if it was deleted: it is looked up in the list, which is not an error. @param {any} version */
async function stillThere(version) {
  const { datasets } = await get("v1/datasets", { limit: 500 });
  const dataset = datasets.find((/** @type {any} */ each) => each.id === version.dataset);
  if (!dataset) return { dataset: null, audit: null, labeled: 0 };
  const audits = `v1/datasets/${part(dataset.id)}/audits`;
  const [{ audits: [last] }, { labeled }] = await Promise.all([get(audits), get(`v1/datasets/${part(dataset.id)}/annotations/summary`)]);
  return { dataset, labeled, audit: last ? await get(`${audits}/${part(last.id)}`, { model: version.name }) : null };
}

/** The labels that it contradicts, those first of which it is the surest. @param {{dataset: any, name: string, number: string}} props */
function Mistakes({ dataset, name, number }) {
  const query = { model: `${name}/${number}`, mistaken: true, order: "likeliest", limit: MOST_MISTAKES };
  const found = useLoad(() => get(`v1/datasets/${part(dataset.id)}/documents`, query), [dataset.id, name, number]);
  const listed = found.value?.documents ?? [];
  if (found.error) return html`<${Problem} error=${found.error} />`;
  if (!found.value) return html`<p class="quiet">Looking for its mistakes …</p>`;
  return html`<section><h2>Worst mistakes</h2>
    ${listed.length ? html`<p>Labels that it contradicts, those first of which it is the surest. Either it is wrong, or the label is: <a href=${to("doubts", dataset.id)}>look at the doubts</a>.</p>
    <${Scroll} label="Worst mistakes"><table class="stacked"><thead><tr><th>Document</th><th>Label</th><th>The version says</th><th class="number">Probability</th></tr></thead>
      <tbody>${listed.map((/** @type {any} */ each) => html`<tr key=${each.id}><td><span class="lines" dir="auto">${snippet(each)}</span></td><td data-head="Label"><span class="clip" dir="auto">${each.label}</span></td><td data-head="The version says"><span class="clip" dir="auto">${each.predicted}</span></td><td class="number" data-head="Probability">${percent(each.probability, 1)}</td></tr>`)}</tbody></table><//>` : html`<p>It agrees with every label that there is.</p>`}</section>`;
}

/** The figures on labels that it was not told; where there are none, on those that it was told. The service draws them. @param {{path: string, dataset: any}} props */
function Evaluation({ path, dataset }) {
  const found = useLoad(async () => {
    const everything = { dataset: dataset.id, annotations: "latest" };
    const all = await get(`${path}/evaluate`, everything).catch((error) => (error.status === 422 ? null : Promise.reject(error)));
    if (!all) return null;
    const fresh = all.told !== all.labeled || !all.told;
    return { fresh, query: new URLSearchParams(all.told && fresh ? { ...everything, held_out: "true" } : everything) };
  }, [path, dataset.id]);
  if (found.error) return html`<${Problem} error=${found.error} />`;
  if (!found.value) return null;
  const { fresh, query } = found.value;
  const link = `${path}/evaluate?${query}`;
  return html`<section><h2>${fresh ? "Figures on labels that it was not told" : "Figures on the labels that it learned from"}</h2>
    ${!fresh && html`<${Notice}>It was told these labels, so it looks better here than it is. An <a href=${to("audit", dataset.id)}>audit</a> says how often it is really wrong.<//>`}
    <iframe class="report" src=${link} title="Figures and plots"></iframe>
    <p><a href=${link} target="_blank" rel="noopener">All figures and plots, as a page of their own</a></p></section>`;
}

/** @param {{explained: any}} props */
function Weights({ explained }) {
  const two = explained.classes.length === 2;
  const shown = explained.weights.slice(0, MOST_CLASSES);
  return html`<div class="columns">${shown.flatMap((/** @type {any} */ each) => [html`<${Side} key=${`for ${each.class}`} label=${each.class} listed=${each.for} />`, two && html`<${Side} key="against" label=${explained.classes.find((/** @type {any} */ label) => label !== each.class)} listed=${each.against} />`])}</div>
    ${explained.weights.length > MOST_CLASSES && html`<p class="quiet">and ${counted(explained.weights.length - MOST_CLASSES, "more class")}</p>`}`;
}

/** @param {{label: any, listed: any[]}} props */
function Side({ label, listed }) {
  const most = Math.max(1e-12, ...listed.map((each) => Math.abs(each.weight)));
  return html`<section class="card"><h3 dir="auto">${label}</h3><div class="bars">${listed.length ? listed.map((each) => html`<${Bar} label=${each.name ?? each.id ?? `feature ${each.feature ?? each.position}`} share=${Math.abs(each.weight) / most} text=${Math.abs(each.weight).toPrecision(2)} />`) : html`<p class="quiet">no term speaks for it by itself</p>`}</div></section>`;
}
