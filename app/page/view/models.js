/** @file Models: their versions side by side, which one is served, and the way back. */

import { call, get, part } from "./api.js";
import { Curve } from "./curve.js";
import { Download } from "./download.js";
import { project } from "./project.js";
import { Right, Sentence, qualityOf } from "./quality.js";
import { to } from "./route.js";
import { toast } from "./toasts.js";
import { Empty, Problem, Scroll, counted, html, percent, sentence, useLoad, useState, when } from "./ui.js";

const LIVE = "live";
const MOST = 20;
const COMPARED = 4;
const MOST_CLASSES = 12;

export function Models() {
  const models = useLoad(async () => {
    const [{ models: listed }, { datasets }] = await Promise.all([get("v1/models", { limit: 100 }), get("v1/datasets", { limit: 500 })]);
    const found = await Promise.all(listed.map((/** @type {any} */ each) => get(`v1/models/${part(each.name)}`)));
    return found.map((model) => ({ ...model, data: datasets.find((/** @type {any} */ each) => each.id === model.versions.at(-1)?.dataset) }));
  }, []);
  if (models.error) return html`<h1>Models</h1><${Problem} error=${models.error} />`;
  if (!models.value) return html`<h1>Models</h1><p class="quiet">Loading …</p>`;
  const listed = [...models.value].sort((one) => (one.name === project.value.model ? -1 : 1));
  if (!listed.length) return html`<h1>Models</h1><${Empty} title="No model was trained yet"><p>A model comes by itself while you label.</p><a class="button primary" href=${to("data")}>Go to the data</a><//>`;
  return html`<h1>Models</h1><p>The alias <b>${LIVE}</b> is the version that your programs should use: point it to a version, and back to an older one.</p>
    ${listed.map((model) => html`<${Versions} key=${model.name} model=${model} onChange=${models.again} />`)}`;
}

/** @param {{model: any, onChange: () => void}} props */
function Versions({ model, onChange }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const audit = useLoad(() => inTurn(() => lastAudit(model)), [model.name, model.served]);
  const publish = async (/** @type {number} */ version) => {
    try {
      await call("PUT", `v1/models/${part(model.name)}/aliases/${LIVE}`, { version });
      toast(`${LIVE} is version ${version} now`);
      setError(null);
      onChange();
    } catch (failure) {
      setError(failure);
    }
  };
  const report = audit.value?.report;
  const audited = report?.versions ?? [];
  const served = model.versions.find((/** @type {any} */ each) => each.version === model.served);
  const shown = model.versions.slice(-MOST).reverse();
  return html`<section class="card"><h2>${model.name}</h2><${Problem} error=${error} />
    ${!audit.loaded && html`<p class="quiet" role="status">Each version is measured on the last audit …</p>`}
    ${served && audit.loaded && html`<${Sentence} quality=${qualityOf(served, report)} />`}
    <${Scroll} label=${`Versions of ${model.name}`}><table class="stacked"><thead><tr><th>Version</th><th>Trained</th><th>Right</th><th>Classes</th><th><span class="unseen">Aliases and actions</span></th></tr></thead>
    <tbody>${shown.map((/** @type {any} */ each) => html`<${Row} key=${each.version} version=${each} model=${model} quality=${qualityOf(each, report)} onPublish=${publish} />`)}</tbody></table><//>
    ${model.versions.length > MOST && html`<p class="quiet">${counted(model.versions.length - MOST, "older version")}</p>`}
    <div class="columns"><${Curve} versions=${audited} forecast=${report?.forecast} /><${Fractions} versions=${shown.slice(0, COMPARED)} /></div>
    ${report?.forecast && html`<p>${sentence(report.forecast.why)}.</p>`}
    ${audit.loaded && !audited.some((/** @type {any} */ each) => each.labels) && html`<p class="quiet">How often a version is wrong is known after an <a href=${to("audit", model.versions.at(-1)?.dataset ?? "")}>audit</a>.</p>`}
    ${audit.value && html`<h3>Download</h3><${Download} dataset=${audit.value.dataset} model=${model.name} automatic=${report?.automatic?.possible ? report.automatic : null} />`}</section>`;
}

/** @param {{version: any, model: any, quality: any, onPublish: (version: number) => void}} props */
function Row({ version, model, quality, onPublish }) {
  const aliases = Object.entries(model.aliases).filter(([, number]) => number === version.version).map(([name]) => name);
  return html`<tr><td data-head="Version"><span><a href=${to("model", model.name, version.version)} aria-label=${`Version ${version.version}`}>${version.version}</a> ${version.version === model.served && html`<span class="tag">served</span>`}${!version.takes_over && html`<span class="tag bad" title=${version.comparison?.why}>worse, not served</span>`}</span></td>
    <td class="date" data-head="Trained">${when(version.created_at)}</td><td data-head="Right"><${Right} quality=${quality} /></td>
    <td data-head="Classes"><span>${version.classes.length > 4 ? counted(version.classes.length, "class") : version.classes.map((/** @type {any} */ each, /** @type {number} */ k) => html`${k > 0 && ", "}<bdi>${each}</bdi>`)}</span></td>
    <td>${aliases.map((name) => html`<span class="tag strong">${name}</span> `)}${!aliases.includes(LIVE) && html`<button onClick=${() => onPublish(version.version)} aria-label=${`Make version ${version.version} ${LIVE}`}>Make ${LIVE}</button>`}</td></tr>`;
}

/** How common each class is, as the newest versions estimate it: where these disagree, one of them is wrong. @param {{versions: any[]}} props */
function Fractions({ versions }) {
  const key = versions.map((each) => each.job).join();
  const found = useLoad(() => Promise.all(versions.map((each) => get(`v1/jobs/${part(each.job)}`).then((job) => ({ version: each.version, fractions: job.report?.class_fractions ?? {} }), () => null))), [key]);
  const known = (found.value ?? []).flatMap((each) => (each && Object.keys(each.fractions).length ? [each] : []));
  if (!known.length) return null;
  const names = [...new Set(known.flatMap((each) => Object.keys(each.fractions)))].sort((one, other) => (known[0].fractions[other] ?? 0) - (known[0].fractions[one] ?? 0));
  return html`<section><h3>Class fractions</h3><${Scroll} label=${`Class fractions of ${versions[0].name}`}><table><thead><tr><th>Class</th>${known.map((each) => html`<th class="number">v${each.version}</th>`)}</tr></thead>
    <tbody>${names.slice(0, MOST_CLASSES).map((name) => html`<tr><td><span class="clip" dir="auto">${name}</span></td>${known.map((each) => html`<td class="number">${percent(each.fractions[name], 1)}</td>`)}</tr>`)}</tbody></table><//>
    ${names.length > MOST_CLASSES && html`<p class="quiet">and ${counted(names.length - MOST_CLASSES, "rarer class")}</p>`}</section>`;
}

let turn = /** @type {Promise<any>} */ (Promise.resolve());

/** Ask one after the other: the service measures few versions at a time for one person, and refuses more. @template T @param {() => Promise<T>} ask @returns {Promise<T>} */
const inTurn = (ask) => (turn = turn.then(ask, ask));

/** The data of a model, and what their last audit says of its versions; null if they were deleted. @param {any} model */
async function lastAudit({ name, data: dataset }) {
  if (!dataset) return null;
  const path = `v1/datasets/${part(dataset.id)}/audits`;
  const { audits } = await get(path);
  return { dataset, report: audits.length ? await get(`${path}/${part(audits[0].id)}`, { model: name }) : null };
}
