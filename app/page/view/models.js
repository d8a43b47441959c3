/** @file Models: their versions side by side, which one is served, and the way back. */

import { call, get, part } from "./api.js";
import { project } from "./project.js";
import { to } from "./route.js";
import { Empty, Problem, counted, html, percent, say, useLoad, useState, when } from "./ui.js";

const LIVE = "live";

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
  const errors = new Map((audit.value?.versions ?? []).map((/** @type {any} */ each) => [each.version, each]));
  const shown = model.versions.slice(-20).reverse();
  return html`<section class="card"><h2>${model.name}</h2><${Problem} error=${error} />
    <div class="scroll"><table><thead><tr><th>Version</th><th>Trained</th><th class="number">Right on labels left out</th><th class="number">Error by audit</th><th>Classes</th><th><span class="unseen">Aliases and actions</span></th></tr></thead>
    <tbody>${shown.map((/** @type {any} */ each) => html`<${Row} key=${each.version} version=${each} model=${model} audited=${errors.get(each.version)} onPublish=${publish} />`)}</tbody></table></div>
    ${model.versions.length > 20 && html`<p class="quiet">${counted(model.versions.length - 20, "older version")}</p>`}</section>`;
}

/** @param {{version: any, model: any, audited: any, onPublish: (version: number) => void}} props */
function Row({ version, model, audited, onPublish }) {
  const held = version.held_out;
  const aliases = Object.entries(model.aliases).filter(([, number]) => number === version.version).map(([name]) => name);
  return html`<tr><td><a href=${to("model", model.name, version.version)}>${version.version}</a> ${version.version === model.served && html`<span class="tag">served</span>`}${!version.takes_over && html`<span class="tag" title=${version.comparison?.why}>worse</span>`}</td>
    <td class="date">${when(version.created_at)}</td><td class="number">${held ? `${percent(held.right / held.labels)} of ${held.labels}` : "–"}</td>
    <td class="number">${audited?.labels ? html`${percent(audited.error, 1)} <span class="quiet">${percent(audited.low)} … ${percent(audited.high)}</span>` : "–"}</td><td>${version.classes.length > 4 ? counted(version.classes.length, "class") : version.classes.join(", ")}</td>
    <td>${aliases.map((name) => html`<span class="tag strong">${name}</span> `)}${!aliases.includes(LIVE) && html`<button onClick=${() => onPublish(version.version)} aria-label=${`Make version ${version.version} ${LIVE}`}>make ${LIVE}</button>`}</td></tr>`;
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
