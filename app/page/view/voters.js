/** @file Who votes, people who differ among them: how right each voter is by what the model found out, and what its votes were worth. */

import { get, modelOf, part } from "./api.js";
import { project } from "./project.js";
import { Problem, Scroll, counted, html, percent, useLoad } from "./ui.js";

const MOST_CLASSES = 6;

/** @param {{dataset: any}} props */
export function Voters({ dataset }) {
  const cast = dataset.voters ?? {};
  const found = useLoad(() => reportOf(dataset.id), [dataset.id, project.value.model]);
  const report = found.value ?? {};
  const names = [...new Set([...Object.keys(cast), ...Object.keys(report)])].sort((one, other) => (report[other]?.worth ?? 0) - (report[one]?.worth ?? 0));
  if (!names.length) return null;
  return html`<section><h2>Voters</h2><${Problem} error=${found.error} />
    <p>${Object.keys(report).length ? "How right each one is follows from certain labels, from the other voters, and from the texts. Worth counts the documents that its votes set right." : "How right each one is will be known after a training."}</p>
    <${Scroll} label="Voters"><table class="stacked"><thead><tr><th>Voter</th><th class="number">Documents</th><th class="number">Right</th><th class="number">Likely (95%)</th><th class="number">Worth</th><th>By class</th></tr></thead>
      <tbody>${names.map((name) => html`<${Row} key=${name} name=${name} documents=${cast[name] ?? Math.round((report[name]?.coverage ?? 0) * dataset.n_documents)} own=${report[name]} />`)}</tbody></table><//></section>`;
}

/** @param {{name: string, documents: number, own: any}} props */
function Row({ name, documents, own }) {
  const copies = Object.entries(own?.copies ?? {}).sort((one, other) => other[1] - one[1]);
  const classes = Object.entries(own?.classes ?? {});
  return html`<tr><td data-head="Voter"><span><b>${name || "without a name"}</b>${copies.length > 0 && html`<br /><span class="quiet">copies ${copies.map(([other, share]) => `${other} (${percent(share)})`).join(", ")}</span>`}</span></td>
    <td class="number" data-head="Documents">${documents.toLocaleString("en")}</td>
    <td class="number" data-head="Right">${own ? html`<b>${percent(own.right)}</b>` : "–"}</td><td class="number" data-head="Likely (95%)">${own ? `${percent(own.low)} to ${percent(own.high)}` : "–"}</td>
    <td class="number" data-head="Worth">${own ? own.worth.toFixed(1) : "–"}</td>
    <td data-head="By class"><span>${classes.slice(0, MOST_CLASSES).map(([label, each], k) => html`${k > 0 && ", "}<bdi>${label}</bdi> ${percent(each.right)}`)}${classes.length > MOST_CLASSES && ` and ${counted(classes.length - MOST_CLASSES, "more class")}`}</span></td></tr>`;
}

/** What the served version found out about the voters of a dataset. @param {string} dataset @returns {Promise<Record<string, any>>} */
async function reportOf(dataset) {
  const model = await modelOf(project.value.model);
  const served = model?.versions.find((/** @type {any} */ each) => each.version === model.served && each.dataset === dataset);
  if (!served) return {};
  const job = await get(`v1/jobs/${part(served.job)}`);
  return job.report?.voters ?? {};
}
