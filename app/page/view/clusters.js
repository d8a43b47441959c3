/** @file A first look at documents without labels: clusters, which a person names, joins by the same name, and splits; a name becomes labels to confirm. */

import { call, get, isOver, part, post } from "./api.js";
import { Sheet } from "./batch.js";
import { plainly, useClasses } from "./classes.js";
import { snippet } from "./document.js";
import { project } from "./project.js";
import { to } from "./route.js";
import { Bar, Empty, Notice, Problem, counted, html, percent, sentence, useInterval, useLoad, useState, when } from "./ui.js";

const USUAL = 8;
const MOST_CLUSTERS = 100;
const SHOWN = 3;
/** Documents that are looked at where a cluster is split. */
const MOST_SPLIT = 2000;
const PAGE = 500;

/** A cluster of one look. @typedef {{key: string, own: any, source: import("./batch.js").Source, part: string}} Cluster `part`: name of the dataset of its documents, once it was split */

/** @param {{parts: string[], dataset: any}} props */
export function Clusters({ parts, dataset }) {
  const id = parts[0], model = `${project.value.model}-look`;
  const [count, setCount] = useState(USUAL);
  const [error, setError] = useState(/** @type {any} */ (null));
  const [confirmed, setConfirmed] = useState("");
  const [look, setLook] = useState("");
  const [names, setNames] = useState(/** @type {Record<string, string>} */ (dataset.clusters));
  const classes = useClasses(id);
  const all = useLoad(() => get("v1/datasets", { limit: 500 }), [id]);
  const datasets = all.value?.datasets ?? [];
  const found = useLoad(async () => (all.value ? newestFirst(await jobsOf(model, datasets)) : null), [model, id, all.value]);
  const jobs = found.value ?? [];
  const running = jobs.find((/** @type {any} */ each) => !isOver(each));
  useInterval(() => running && found.again(), 1000);
  const begin = (/** @type {string} */ model, /** @type {string} */ of, /** @type {number} */ n_clusters) => post("v1/jobs", { model, dataset: of, algorithm: "clusters", encoder: null, options: { n_clusters }, publish: "always" }).then(found.again);
  const start = (/** @type {Event} */ event) => (event.preventDefault(), setError(null), setConfirmed(""), setLook(""), begin(model, id, count).catch(setError));
  const split = async (/** @type {Cluster} */ cluster) => {
    setError(null);
    const own = await partOf(cluster);
    await begin(lookAt(cluster.source.model.split("/")[0], own), own, 2);
    all.again();
  };
  const name = (/** @type {string} */ key, /** @type {string} */ text) => {
    // the spelling that is there already joins them
    const others = listed.flatMap((each) => (each.key !== key && names[each.key]) || []);
    const known = [...classes.listed.value.map((each) => String(each.name)), ...others].find((each) => plainly(each) === plainly(text));
    const own = known ?? text.trim();
    setNames({ ...names, [key]: own });
    call("PATCH", `v1/datasets/${part(id)}`, { clusters: { [key]: own } }).catch(setError);
    return own;
  };
  const looks = jobs.filter((/** @type {any} */ each) => each.dataset === id && each.state === "succeeded");
  const root = looks.find((/** @type {any} */ each) => each.id === look) ?? looks[0];
  const listed = root ? clustersOf(root, jobs, datasets) : [];
  const failed = jobs[0]?.state === "failed" ? jobs[0].error : null;
  if (dataset.label_kind === "several") return html`<h1>Clusters</h1><${Empty} title="These documents may have several classes"><p>A cluster is of one class.</p><a class="button primary" href=${to("label", id)}>Label</a><//>`;
  const named = [...new Set(listed.map(({ key }) => names[key]).filter(Boolean))];
  const of = (/** @type {string} */ text) => listed.filter(({ key }) => names[key] === text);
  const sources = of(confirmed).map(({ source }) => source);
  const confirm = (/** @type {string} */ text) => (classes.listed.value.some((each) => String(each.name) === text) ? Promise.resolve() : classes.add([text])).then(() => setConfirmed(text), setError);
  const label = classes.listed.value.find((each) => String(each.name) === confirmed)?.name ?? confirmed;
  return html`<h1>Clusters</h1>
    <p>A first look without labels: documents that are much alike stand together. Name those that you recognise. The same name joins clusters, and a name becomes labels that you confirm.</p>
    <form class="row" onSubmit=${start}><label class="row">How many <input class="short" type="number" name="clusters" min="2" max=${Math.min(MOST_CLUSTERS, dataset.n_documents)} required value=${count} onInput=${(/** @type {any} */ event) => setCount(Number(event.target.value))} /></label><button class=${root ? "" : "primary"} disabled=${Boolean(running) || !found.value}>${root ? "Look again" : "Look"}</button><span class="quiet">Ask for more than you expect: two are easily joined.</span>
      ${looks.length > 1 && html`<label class="row row-end">Clusters of <select name="look" value=${root.id} onChange=${(/** @type {any} */ event) => (setConfirmed(""), setLook(event.target.value))}>${looks.map((/** @type {any} */ each) => html`<option key=${each.id} value=${each.id}>${when(each.created_at)}: ${each.report.clusters.length}</option>`)}</select></label>`}</form>
    <${Problem} error=${error ?? found.error ?? all.error} />
    ${running && html`<div role="status"><${Bar} strong label="looking" share=${running.progress.fraction} text=${percent(running.progress.fraction)} /><p class="quiet">${sentence(running.progress.phase || "waiting")}</p></div>`}
    ${failed && html`<${Notice} kind="error">${sentence(failed.detail)}<//>`}
    ${root?.warnings.map((/** @type {string} */ warning) => html`<${Notice}>${sentence(warning)}<//>`)}
    ${confirmed && sources.length > 0 ? html`<div class="row named"><button onClick=${() => setConfirmed("")}>Back to the clusters</button><h2>Which of these are <bdi>${confirmed}</bdi>?</h2></div><${Sheet} key=${confirmed} dataset=${id} count=${dataset.n_documents} label=${label} sources=${sources} />` : html`
    ${named.length > 0 && html`<div class="row named" role="group" aria-label="Names">${named.map((text) => html`<button key=${text} class="primary" onClick=${() => confirm(text)}>Confirm <bdi>${text}</bdi> <span>${of(text).reduce((sum, { own }) => sum + own.size, 0).toLocaleString("en")}</span></button>`)}<a class="button" href=${to("label", id)}>Go on labeling</a></div>`}
    <ul class="sheet clusters">${listed.map((cluster) => html`<${Card} key=${cluster.key} cluster=${cluster} name=${names[cluster.key] ?? ""} joined=${names[cluster.key] ? of(names[cluster.key]).length - 1 : 0} splits=${!running && cluster.own.size > SHOWN} onName=${(/** @type {string} */ text) => name(cluster.key, text)} onSplit=${() => split(cluster).catch(setError)} />`)}</ul>`}`;
}

/** @param {{cluster: Cluster, name: string, joined: number, splits: boolean, onName: (text: string) => string, onSplit: () => void}} props */
function Card({ cluster: { own, source }, name, joined, splits, onName, onSplit }) {
  const [text, setText] = useState(name);
  const ids = JSON.stringify(own.documents.slice(0, SHOWN));
  const examples = useLoad(() => get(`v1/datasets/${part(source.dataset)}/documents`, { ids, limit: SHOWN }), [source.dataset, ids]);
  return html`<li class="card"><p class="row"><input class="wide" aria-label=${`Name of ${own.name}`} placeholder="Name it" maxlength="100" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)} onChange=${() => setText(onName(text))} /><button class="small row-end" onClick=${onSplit} disabled=${!splits} aria-label=${`Split ${own.name}`}>Split</button></p>
    <p class="quiet">${counted(own.size, "document")}${joined > 0 && html` <span class="tag strong">joined with ${counted(joined, "other")}</span>`}</p>
    <p class="terms">${own.terms.map((/** @type {string} */ term) => html`<span key=${term} class="tag" dir="auto">${term}</span> `)}</p>
    ${(examples.value?.documents ?? []).map((/** @type {any} */ each) => html`<p key=${each.id} class="lines" dir="auto">${snippet(each)}</p>`)}</li>`;
}

/** @param {any[]} jobs */
const newestFirst = (jobs) => jobs.sort((one, other) => (one.created_at < other.created_at ? 1 : -1));

/** The name of the dataset of the documents of a cluster. @param {any} job @param {any} own */
const partName = (job, own) => `part-${own.label}-of-${job.model.version}-of-${job.model.name}`.slice(0, 128);

/** The jobs of the looks of a model, and of the parts into which their clusters were split. @param {string} model @param {any[]} datasets @returns {Promise<any[]>} */
async function jobsOf(model, datasets) {
  const { jobs: listed } = await get("v1/jobs", { model, limit: 5 });
  const jobs = await Promise.all(listed.map((/** @type {any} */ job) => (job.state === "succeeded" ? get(`v1/jobs/${part(job.id)}`) : job)));
  const parts = jobs.flatMap((job) => (job.report?.clusters ?? []).flatMap((/** @type {any} */ own) => datasets.filter(({ name }) => name === partName(job, own))));
  return [...jobs, ...(await Promise.all(parts.map(({ id }) => jobsOf(lookAt(model, id), datasets)))).flat()];
}

/** The model of a look at a part. @param {string} model @param {string} dataset */
const lookAt = (model, dataset) => `${model}-${dataset.slice(-8)}`;

/** The clusters of a look; in place of one that was split those of its parts. @param {any} job @param {any[]} jobs @param {any[]} datasets @returns {Cluster[]} */
function clustersOf(job, jobs, datasets) {
  return job.report.clusters.filter((/** @type {any} */ own) => own.size).flatMap((/** @type {any} */ own) => {
    const part = partName(job, own), parts = datasets.filter(({ name }) => name === part);
    const inner = jobs.find((each) => each.state === "succeeded" && parts.some(({ id }) => id === each.dataset));
    const source = { dataset: job.dataset, model: `${job.model.name}/${job.model.version}`, predicted: own.label };
    return inner ? clustersOf(inner, jobs, datasets) : [{ key: `${job.id}/${own.label}`, own, source, part }];
  });
}

/** A dataset of the documents of a cluster, put away so that it is not in the list; its id. @param {Cluster} cluster */
async function partOf({ source, part: name }) {
  const documents = [];
  let cursor = null;
  do {
    const page = await get(`v1/datasets/${part(source.dataset)}/documents`, { model: source.model, predicted: source.predicted, order: "likeliest", limit: PAGE, cursor });
    documents.push(...page.documents);
    cursor = page.next;
  } while (cursor && documents.length < MOST_SPLIT);
  const bare = documents.map(({ id, text, indices, values, features, vector, vectors }) => ({ id, text, indices, values, features, vector, vectors }));
  const { id } = await post(`v1/datasets?name=${part(name)}`, { documents: bare });
  await call("PATCH", `v1/datasets/${part(id)}`, { archived: true });
  return id;
}
