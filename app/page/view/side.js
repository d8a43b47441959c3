/** @file Beside the document: labels by class, what the model knows, what to do next. */

import { get, part } from "./api.js";
import { REST, plainly } from "./classes.js";
import { snippet, worded } from "./document.js";
import { Download } from "./download.js";
import { doubtful, project } from "./project.js";
import { Sentence, qualityOf } from "./quality.js";
import { to } from "./route.js";
import { Bar, Notice, counted, html, percent, sentence, stopped, useLoad } from "./ui.js";

const RECENT = 10;
/** Labels of one class alone from which more of it can be found. */
const FEWEST = 5;
const ALIKE = "are two classes";
/** What a training does, for who labels; the phase in the words of its methods stands in Jobs. @type {[RegExp, string][]} */
const DOING = [
  [/vector/, "reading the texts for their meaning"],
  [/terms|preparing|^starting/, "looking for the words that matter"],
  [/calibration/, "learning how sure it may be"],
  [/class fractions/, "estimating how common each class is"],
  [/lambda|choice|comparison|fold/, "comparing ways to learn"],
];

/** @param {string} phase */
const inWords = (phase) => (phase ? (DOING.find(([words]) => words.test(phase))?.[1] ?? "learning from your answers") : "waiting for its turn");

/** @param {{dataset: any, counts: Record<string, number>, trainer: any, summary: any, answered: any[], onBack: (document: any) => void, onFind: () => void}} props */
export function Side({ dataset, counts, trainer, summary, answered, onBack, onFind }) {
  const several = dataset.label_kind === "several";
  const labels = several ? (summary?.labeled ?? 0) + answered.filter(({ label }) => label !== undefined).length : Object.values(counts).reduce((sum, count) => sum + count, 0);
  const most = Math.max(1, ...Object.values(counts));
  const named = Object.entries(counts).sort((a, b) => b[1] - a[1]);
  const used = named.filter(([, count]) => count).map(([label]) => plainly(label));
  return html`<aside class="side" aria-label="Progress">
    <h2>${dataset.name ?? project.value.name}</h2>
    <p class="quiet">${counted(labels, several ? "answer" : "label")} of ${counted(dataset.n_documents, "document")}. <a href=${to("classes", dataset.id)}>Classes</a></p>
    ${doubtful(dataset).filter((warning) => !warning.endsWith(ALIKE) || new Set(used).size < used.length).slice(0, 2).map((warning) => html`<${Notice} key=${warning}>${stopped(sentence(warning))}${warning.endsWith(ALIKE) && html` <a href=${to("classes", dataset.id)}>Join them</a>`}<//>`)}
    <div class="bars">${named.slice(0, 12).map(([label, count]) => html`<${Bar} key=${label} label=${label} share=${count / most} text=${count} />`)}
    ${named.length > 12 && html`<p class="quiet">and ${counted(named.length - 12, "more class")}</p>`}</div>
    <${Knowledge} dataset=${dataset} trainer=${trainer} />
    ${!several && named.filter(([, count]) => count > 0).length === 1 && html`<${OneClass} label=${named[0][0]} count=${named[0][1]} dataset=${dataset.id} trainer=${trainer} onFind=${onFind} />`}
    <${Advice} labels=${labels} counts=${counts} trainer=${trainer} dataset=${dataset} />
    <${Recent} answered=${answered} onBack=${onBack} />
    <${People} dataset=${dataset.id} summary=${summary} />
    <h3>Download</h3><${Download} dataset=${dataset} model=${trainer.version.value?.name} />
  </aside>`;
}

/** The way on with labels of one class alone. @param {{label: string, count: number, dataset: string, trainer: any, onFind: () => void}} props */
function OneClass({ label, count, dataset, trainer, onFind }) {
  const share = trainer.share.value;
  if (trainer.version.value) return html`<p>${share && `About ${percent(share.share)} of the documents without a label are ${label}, likely ${percent(share.low)} to ${percent(share.high)}. `}<a href=${to("batch", dataset)}>Confirm more like these</a></p>`;
  return html`<button onClick=${onFind} disabled=${count < FEWEST || trainer.job.value !== null}>Find more like these</button>
    <p class="quiet">${count < FEWEST ? `After ${counted(FEWEST, "answer")} of one class alone` : `Only ${label} is labeled`}: all else counts as “${REST}”, and how common each is will be estimated.</p>`;
}

/** The last answers, to look at again. @param {{answered: any[], onBack: (document: any) => void}} props */
function Recent({ answered, onBack }) {
  if (!answered.length) return null;
  const shown = answered.slice(-RECENT).reverse();
  return html`<h3>Last answers</h3><ol class="recent">${shown.map(({ document, label }, k) => html`<li key=${answered.length - k}><button class="small" onClick=${() => onBack(document)} title=${snippet(document)}><b class="clip" dir="auto">${label === undefined ? "skipped" : worded(label)}</b> <span class="clip quiet" dir="auto">${document.unfetched ? document.id : snippet(document)}</span></button></li>`)}</ol>`;
}

/** How far people agree, where several of them answered the same documents. @param {{dataset: string, summary: any}} props */
function People({ dataset, summary }) {
  const disputed = summary?.disputed ?? 0;
  return html`<h3>People</h3><p class="quiet">${summary?.compared ? `They agree on ${summary.agreed} of ${counted(summary.compared, "document")} that several answered. ` : ""}${disputed > 0 && html`<a href=${`${to("documents", dataset)}?disagreement=true`}>Settle ${disputed}</a>. `}<a href=${to("people", dataset)}>Invite a colleague</a></p>`;
}

/** @param {{dataset: any, trainer: any}} props */
function Knowledge({ dataset, trainer }) {
  const job = trainer.job.value, version = trainer.version.value, meaning = trainer.meaning.value;
  const audit = useAudit(dataset.id, version);
  return html`<h3>Model</h3>
    ${version && html`<p><a href=${to("model", version.name, version.version)}>Version ${version.version}</a>${version.confidence === "none" ? ". It knows no more than chance would." : ""}</p>${audit && html`<${Sentence} quality=${qualityOf(version, audit)} />`}`}
    ${audit?.automatic?.possible && html`<p>${audit.automatic.documents.toLocaleString("en")} documents <a href=${to("audit", dataset.id)}>may be labeled automatically</a>.</p>`}
    ${!version && !job && html`<p class="quiet">It trains by itself after 20 answers, or after some when you pause.</p>`}
    ${job ? html`<div role="status"><${Bar} strong label="training" share=${job.progress.fraction} text=${percent(job.progress.fraction)} /><p class="quiet" title=${job.progress.phase || undefined}>${inWords(job.progress.phase)}</p></div>` : html`<button onClick=${() => trainer.train()} disabled=${!trainer.canTrain} title=${version && !trainer.canTrain ? "It has learned from all answers" : undefined}>Train now</button>`}
    ${meaning && html`<p class="quiet">It goes by words, and by the meaning of ${meaning.read < meaning.texts ? `${meaning.read.toLocaleString("en")} of` : "all"} ${counted(meaning.texts, "text")}.</p>`}
    ${trainer.note.value && html`<${Notice}>${trainer.note.value}<//>`}`;
}

/** What the last audit of a dataset says of a version; of no version without one, null before that is known. @param {string} dataset @param {any} version */
function useAudit(dataset, version) {
  const audits = useLoad(async () => {
    if (!version) return null;
    const { audits: listed } = await get(`v1/datasets/${part(dataset)}/audits`);
    return listed.length ? get(`v1/datasets/${part(dataset)}/audits/${part(listed[0].id)}`, { model: version.name }) : { versions: [] };
  }, [dataset, version?.name, version?.version]);
  return audits.value;
}

/** @param {{labels: number, counts: Record<string, number>, trainer: any, dataset: any}} props */
function Advice({ labels, counts, trainer, dataset }) {
  const version = trainer.version.value;
  const rare = Object.entries(counts).filter(([, count]) => count < 5).map(([label]) => label);
  if (!version || (!rare.length && labels < 20)) return null;
  return html`<h3>Next</h3><ul class="plain">
    ${rare.length > 0 && html`<li>Search for <b><bdi>${rare.slice(0, 3).join(", ")}</bdi></b>: a class needs some five labels.</li>`}
    ${labels >= 20 && html`<li><a href=${to("doubts", dataset.id)}>Look at the doubts</a></li>${dataset.label_kind !== "several" && html`<li><a href=${to("batch", dataset.id)}>Confirm many of one class</a></li>`}`}
    ${labels >= 40 && html`<li><a href=${to("audit", dataset.id)}>Audit: may it be trusted?</a></li>`}
  </ul>`;
}
