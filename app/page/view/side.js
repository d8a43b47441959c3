/** @file Beside the document: labels by class, what the model knows, what to do next. */

import { get, part } from "./api.js";
import { doubtful, project } from "./project.js";
import { to } from "./route.js";
import { Bar, Notice, counted, html, percent, sentence, stopped, useLoad } from "./ui.js";

/** @param {{dataset: any, counts: Record<string, number>, trainer: any, summary: any}} props */
export function Side({ dataset, counts, trainer, summary }) {
  const labels = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const most = Math.max(1, ...Object.values(counts));
  const named = Object.entries(counts).sort((a, b) => b[1] - a[1]);
  return html`<aside class="side" aria-label="Progress">
    <h2>${project.value.name}</h2>
    <p class="quiet">${counted(labels, "label")} of ${counted(dataset.n_documents, "document")}</p>
    ${doubtful(dataset).slice(0, 2).map((warning) => html`<${Notice} key=${warning}>${stopped(sentence(warning))}<//>`)}
    <div>${named.slice(0, 12).map(([label, count]) => html`<${Bar} key=${label} label=${label} share=${count / most} text=${count} />`)}
    ${named.length > 12 && html`<p class="quiet">and ${counted(named.length - 12, "more class")}</p>`}</div>
    <${People} summary=${summary} />
    <${Knowledge} trainer=${trainer} labels=${labels} />
    <${Audited} dataset=${dataset.id} trainer=${trainer} />
    <${Advice} labels=${labels} counts=${counts} trainer=${trainer} dataset=${dataset.id} />
  </aside>`;
}

/** How far people agree, where several of them answered the same documents. @param {{summary: any}} props */
function People({ summary }) {
  if (!summary?.compared) return null;
  return html`<p class="quiet">${counted(Object.keys(summary.people).length, "person").replace("persons", "people")}; they agree on ${summary.agreed} of ${counted(summary.compared, "document")} that several answered.</p>`;
}

/** @param {{trainer: any, labels: number}} props */
function Knowledge({ trainer, labels }) {
  const job = trainer.job.value, version = trainer.version.value;
  const held = version?.held_out;
  return html`<h3>Model</h3>
    ${version && html`<p><a href=${to("model", version.name, version.version)}>Version ${version.version}</a>${held ? html`, right on ${percent(held.right / held.labels)} of ${held.labels} labels that it was not told` : ""}${version.confidence === "none" ? ". It knows no more than chance would." : ""}</p>`}
    ${!version && !job && html`<p class="quiet">It trains by itself after 20 answers, or after some when you pause.</p>`}
    ${job ? html`<div role="status"><${Bar} strong label="training" share=${job.progress.fraction} text=${percent(job.progress.fraction)} /><p class="quiet">${job.progress.phase || job.state}</p></div>` : html`<button onClick=${() => trainer.train()} disabled=${labels < 2}>Train now</button>`}
    ${trainer.note.value && html`<${Notice}>${trainer.note.value}<//>`}`;
}

/** The error by the last audit. @param {{dataset: string, trainer: any}} props */
function Audited({ dataset, trainer }) {
  const model = trainer.version.value?.name;
  const audits = useLoad(async () => {
    if (!model) return null;
    const { audits: listed } = await get(`v1/datasets/${part(dataset)}/audits`);
    return listed.length ? get(`v1/datasets/${part(dataset)}/audits/${part(listed[0].id)}`, { model }) : null;
  }, [dataset, model, trainer.version.value?.version]);
  const report = audits.value;
  const served = report?.versions.find((/** @type {any} */ each) => each.version === trainer.version.value?.version);
  if (!served?.labels) return null;
  return html`<p>Audit: error ${percent(served.error, 1)} (${percent(served.low)} to ${percent(served.high)})</p>${report.automatic?.possible && html`<p>${report.automatic.documents.toLocaleString("en")} documents may be labeled automatically.</p>`}${report.forecast && html`<p>${sentence(report.forecast.why)}.</p>`}`;
}

/** @param {{labels: number, counts: Record<string, number>, trainer: any, dataset: string}} props */
function Advice({ labels, counts, trainer, dataset }) {
  const version = trainer.version.value;
  const rare = Object.entries(counts).filter(([, count]) => count < 5).map(([label]) => label);
  if (!version || (!rare.length && labels < 20)) return null;
  return html`<h3>Next</h3><ul class="plain">
    ${rare.length > 0 && html`<li>Search for <b><bdi>${rare.slice(0, 3).join(", ")}</bdi></b>: a class needs some five labels.</li>`}
    ${labels >= 20 && html`<li><a href=${to("doubts", dataset)}>Look at the doubts</a></li><li><a href=${to("batch", dataset)}>Confirm many of one class</a></li>`}
    ${labels >= 40 && html`<li><a href=${to("audit", dataset)}>Audit: may it be trusted?</a></li>`}
  </ul>`;
}
