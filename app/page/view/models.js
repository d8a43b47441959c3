/** @file Models: their versions side by side, which one is served, and the way back. */

import { call, get, part } from "./api.js";
import { Curve } from "./curve.js";
import { project } from "./project.js";
import { to } from "./route.js";
import { Empty, Problem, Scroll, counted, html, percent, say, sentence, useLoad, useState, when } from "./ui.js";

const LIVE = "live";
const MOST = 20;
const COMPARED = 4;
const MOST_CLASSES = 12;

export function Models() {
  const models = useLoad(async () => {
    const { models: listed } = await get("v1/models", { limit: 100 });
    return Promise.all(listed.map((/** @type {any} */ each) => get(`v1/models/${part(each.name)}`)));
  }, []);
  if (models.error) return html`<h1>Models</h1><${Problem} error=${models.error} />`;
  if (!models.value) return html`<h1>Models</h1><p class="quiet">Loading …</p>`;
  const listed = models.value.filter(Boolean).sort((one) => (one.name === project.value.model ? -1 : 1));
  if (!listed.length) return html`<h1>Models</h1><${Empty} title="No model was trained yet"><p>A model comes by itself while you label.</p><a class="button primary" href=${to("data")}>Go to the data</a><//>`;
  return html`<h1>Models</h1><p>The alias <b>${LIVE}</b> is the version that your programs should use: point it to a version, and back to an older one.</p>
    ${listed.map((model) => html`<${Versions} key=${model.name} model=${model} onChange=${models.again} />`)}`;
}

/** @param {{model: any, onChange: () => void}} props */
function Versions({ model, onChange }) {
  const [error, setError] = useState(/** @type {any} */ (null));
  const audit = useLoad(() => lastAudit(model), [model.name, model.served]);
  const publish = async (/** @type {number} */ version) => {
    try {
      await call("PUT", `v1/models/${part(model.name)}/aliases/${LIVE}`, { version });
      say(`${LIVE} is version ${version} now`);
      setError(null);
      onChange();
    } catch (failure) {
      setError(failure);
    }
  };
  const audited = audit.value?.versions ?? [];
  const errors = new Map(audited.map((/** @type {any} */ each) => [each.version, each]));
  const shown = model.versions.slice(-MOST).reverse();
  return html`<section class="card"><h2>${model.name}</h2><${Problem} error=${error} />
    <${Scroll} label="Versions"><table class="stacked"><thead><tr><th>Version</th><th>Trained</th><th class="number">Right on labels left out</th><th class="number">Error by audit</th><th>Classes</th><th><span class="unseen">Aliases and actions</span></th></tr></thead>
    <tbody>${shown.map((/** @type {any} */ each) => html`<${Row} key=${each.version} version=${each} model=${model} audited=${errors.get(each.version)} auditing=${!audit.loaded} onPublish=${publish} />`)}</tbody></table><//>
    ${model.versions.length > MOST && html`<p class="quiet">${counted(model.versions.length - MOST, "older version")}</p>`}
    <div class="columns"><${Curve} versions=${audited} forecast=${audit.value?.forecast} /><${Fractions} versions=${shown.slice(0, COMPARED)} /></div>
    ${audit.value?.forecast && html`<p>${sentence(audit.value.forecast.why)}.</p>`}
    ${audit.loaded && !audited.some((/** @type {any} */ each) => each.labels) && html`<p class="quiet">How often a version is wrong is known after an <a href=${to("audit", model.versions.at(-1)?.dataset ?? "")}>audit</a>.</p>`}</section>`;
}

/** @param {{version: any, model: any, audited: any, auditing: boolean, onPublish: (version: number) => void}} props */
function Row({ version, model, audited, auditing, onPublish }) {
  const held = version.held_out;
  const aliases = Object.entries(model.aliases).filter(([, number]) => number === version.version).map(([name]) => name);
  return html`<tr><td data-head="Version"><span><a href=${to("model", model.name, version.version)} aria-label=${`Version ${version.version}`}>${version.version}</a> ${version.version === model.served && html`<span class="tag">served</span>`}${!version.takes_over && html`<span class="tag bad" title=${version.comparison?.why}>worse, not served</span>`}</span></td>
    <td class="date" data-head="Trained">${when(version.created_at)}</td><td class="number" data-head="Right on labels left out">${held ? `${percent(held.right / held.labels)} of ${held.labels}` : "–"}</td>
    <td class="number" data-head="Error by audit">${audited?.labels ? html`<span>${percent(audited.error, 1)} <span class="quiet">${percent(audited.low)} to ${percent(audited.high)}</span></span>` : auditing ? "…" : "–"}</td><td data-head="Classes"><span>${version.classes.length > 4 ? counted(version.classes.length, "class") : version.classes.map((/** @type {any} */ each, /** @type {number} */ k) => html`${k > 0 && ", "}<bdi>${each}</bdi>`)}</span></td>
    <td>${aliases.map((name) => html`<span class="tag strong">${name}</span> `)}${!aliases.includes(LIVE) && html`<button onClick=${() => onPublish(version.version)} aria-label=${`Make version ${version.version} ${LIVE}`}>make ${LIVE}</button>`}</td></tr>`;
}

/** How common each class is, as the newest versions estimate it: where these disagree, one of them is wrong. @param {{versions: any[]}} props */
function Fractions({ versions }) {
  const key = versions.map((each) => each.job).join();
  const found = useLoad(() => Promise.all(versions.map((each) => get(`v1/jobs/${part(each.job)}`).then((job) => ({ version: each.version, fractions: job.report?.class_fractions ?? {} }), () => null))), [key]);
  const known = (found.value ?? []).flatMap((each) => (each && Object.keys(each.fractions).length ? [each] : []));
  if (!known.length) return null;
  const names = [...new Set(known.flatMap((each) => Object.keys(each.fractions)))].sort((one, other) => (known[0].fractions[other] ?? 0) - (known[0].fractions[one] ?? 0));
  return html`<section><h3>Class fractions</h3><${Scroll} label="Class fractions"><table><thead><tr><th>Class</th>${known.map((each) => html`<th class="number">v${each.version}</th>`)}</tr></thead>
    <tbody>${names.slice(0, MOST_CLASSES).map((name) => html`<tr><td><span class="clip" dir="auto">${name}</span></td>${known.map((each) => html`<td class="number">${percent(each.fractions[name], 1)}</td>`)}</tr>`)}</tbody></table><//>
    ${names.length > MOST_CLASSES && html`<p class="quiet">and ${counted(names.length - MOST_CLASSES, "rarer class")}</p>`}</section>`;
}

/** What the last audit of the data of a model says of its versions. @param {any} model */
async function lastAudit(model) {
  const dataset = model.versions.at(-1)?.dataset;
  const { datasets } = await get("v1/datasets", { limit: 500 });
  if (!datasets.some((/** @type {any} */ each) => each.id === dataset)) return null;
  const found = await get(`v1/datasets/${part(dataset)}/audits`);
  if (!found.audits.length) return null;
  return get(`v1/datasets/${part(dataset)}/audits/${part(found.audits[0].id)}`, { model: model.name });
}
