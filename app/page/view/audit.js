/** @file Audits: a random sample, its labels, and what they say of the versions. */

import { get, modelOf, part, post } from "./api.js";
import { Answers } from "./answers.js";
import { useClasses } from "./classes.js";
import { Curve } from "./curve.js";
import { Document } from "./document.js";
import { Download } from "./download.js";
import { Saved, outboxOf } from "./outbox.js";
import { ownShare, project } from "./project.js";
import { Sentence, qualityOf } from "./quality.js";
import { Several } from "./several.js";
import { to } from "./route.js";
import { Bar, Empty, Key, Notice, Paper, Problem, Scroll, counted, html, percent, say, scrollPaper, sentence, useKeys, useLoad, useState, when } from "./ui.js";

const SIZES = [50, 100, 200];
const USUAL = 100;
const PRECISIONS = [0.9, 0.95, 0.98];

/** @param {{dataset: any}} props */
export function Audit({ dataset }) {
  const path = `v1/datasets/${part(dataset.id)}/audits`;
  const audits = useLoad(() => get(path), [dataset.id]);
  const [error, setError] = useState(/** @type {any} */ (null));
  const draw = async (/** @type {number} */ n) => {
    try {
      await post(path, { n });
      setError(null);
      audits.again();
    } catch (failure) {
      setError(failure);
    }
  };
  if (audits.error) return html`<h1>Audit</h1><${Problem} error=${audits.error} />`;
  if (!audits.value) return html`<h1>Audit</h1><p class="quiet">Loading …</p>`;
  const [newest, ...older] = audits.value.audits;
  const buttons = html`<div class="row">${SIZES.map((n) => html`<button key=${n} class=${newest || n !== USUAL ? "" : "primary"} onClick=${() => draw(n)}>Draw ${n}</button>`)}</div>`;
  return html`<h1>Audit</h1><p>A random sample says how often the model is wrong. Nothing else does.</p><${Problem} error=${error} />
    ${newest ? html`<${One} key=${newest.id} dataset=${dataset} audit=${newest} />` : html`<${Empty} title="No sample was drawn yet">${buttons}<p class="quiet">After 50 answers you know roughly how often it is wrong. After 100 it may also be known which documents it can label by itself.</p><//>`}
    ${newest && html`<section><h2>Another sample</h2>${buttons}${older.length > 0 && html`<p class="quiet">${counted(older.length, "earlier audit")}, the last of ${when(older[0].created_at)}.</p>`}</section>`}`;
}

/** @param {{dataset: any, audit: any}} props */
function One({ dataset, audit }) {
  const outbox = outboxOf(dataset.id);
  const [precision, setPrecision] = useState(0.95);
  const [answered, setAnswered] = useState(/** @type {string[]} */ ([]));
  const path = `v1/datasets/${part(dataset.id)}/audits/${part(audit.id)}`;
  const model = project.value.model;
  const report = useLoad(async () => {
    await outbox.settled();
    return get(path, { ...ownShare(), ...((await modelOf(model)) ? { model, precision } : {}) });
  }, [path, model, precision]);
  const classes = useClasses(dataset.id);
  if (report.error) return html`<${Problem} error=${report.error} />`;
  if (!report.value) return html`<p class="quiet" role="status">Each version is measured on the sample …</p>`;
  const open = report.value.open.filter((/** @type {string} */ id) => !answered.includes(id));
  const answer = (/** @type {any} */ given) => {
    outbox.add({ document: open[0], drawn: given.action ? undefined : "random", mode: "blind", by: project.value.by || undefined, ...given });
    setAnswered([...answered, open[0]]);
    if (open.length === 1) say("The sample is complete"), report.again();
  };
  const undo = () => {
    const last = answered.at(-1);
    if (!last) return;
    outbox.add({ document: last, action: "undo", by: project.value.by || undefined });
    setAnswered(answered.slice(0, -1));
    if (!open.length) report.again();
  };
  const done = audit.documents.length - open.length;
  return html`<${Bar} strong label="answered" share=${done / audit.documents.length} text=${`${done} of ${audit.documents.length}`} />
    ${report.value.warnings.map((/** @type {string} */ warning) => html`<${Notice}>${warning}<//>`)}
    ${outbox.refused.value.map((text) => html`<${Notice} kind="error">${text}<//>`)}
    ${(open.length > 0 || answered.length > 0) && classes.loaded.value && html`<${Next} dataset=${dataset} ids=${open} classes=${classes.listed.value} onAnswer=${answer} onUndo=${undo} canUndo=${answered.length > 0} />`}
    ${report.value.labeled > 0 && html`<${Report} dataset=${dataset} report=${report.value} precision=${precision} onPrecision=${setPrecision} />`}`;
}

/** @param {{dataset: any, ids: string[], classes: import("./classes.js").Class[], onAnswer: (given: any) => void, onUndo: () => void, canUndo: boolean}} props */
function Next({ dataset, ids, classes, onAnswer, onUndo, canUndo }) {
  const outbox = outboxOf(dataset.id);
  const block = Math.floor(ids.length / 10);
  const [known, setKnown] = useState(/** @type {Record<string, any>} */ ({}));
  useLoad(async () => {
    const wanted = ids.slice(0, 20).filter((id) => !known[id]);
    if (!wanted.length) return null;
    const { documents } = await get(`v1/datasets/${part(dataset.id)}/documents`, { ids: JSON.stringify(wanted), limit: 50 });
    setKnown((before) => ({ ...before, ...Object.fromEntries(documents.map((/** @type {any} */ each) => [each.id, each])) }));
    return null;
  }, [dataset.id, block]);
  const current = known[ids[0]];
  const several = dataset.label_kind === "several";
  const [picked, setPicked] = useState(/** @type {any[]} */ ([]));
  useKeys((event) => {
    if (event.key === " " && current && !/** @type {HTMLElement} */ (event.target).closest("button, a")) event.preventDefault(), onAnswer({ action: "skip" });
    scrollPaper(event);
    if (event.key === "u") onUndo();
  });
  return html`<section aria-label="Document">${ids.length > 0 && html`<${Paper} key=${ids[0]}>${current ? html`<${Document} document=${current} />` : html`<p class="quiet">Fetching documents …</p>`}<//>`}
    ${!ids.length ? null : several ? html`<${Several} classes=${classes} picked=${picked} onPick=${setPicked} onConfirm=${() => current && (onAnswer({ labels: picked }), setPicked([]))} />` : classes.length ? html`<${Answers} classes=${classes} onLabel=${(/** @type {any} */ label) => current && onAnswer({ label })} />` : html`<p class="quiet">Label some documents first, so that there are classes.</p>`}
    <div class="row steady">${ids.length > 0 && html`<button disabled=${!current} onClick=${() => onAnswer({ action: "skip" })}><${Key}>space<//> Skip</button>`}<button disabled=${!canUndo} onClick=${onUndo}><${Key}>u<//> Undo</button><${Saved} outbox=${outbox} /></div></section>`;
}

/** @param {{dataset: any, report: any, precision: number, onPrecision: (precision: number) => void}} props */
function Report({ dataset, report, precision, onPrecision }) {
  const automatic = report.automatic;
  const served = report.versions.find((/** @type {any} */ each) => each.labels);
  return html`<section id="report"><h2>What it says</h2>
    ${served && html`<${Sentence} quality=${qualityOf({ name: served.model, version: served.version, held_out: null }, report)} />`}
    ${report.versions.length ? html`<${Scroll} label="Errors by version"><table class="stacked"><thead><tr><th>Version</th><th class="number">Error</th><th class="number">Likely (95%)</th><th class="number">Labels</th></tr></thead>
      <tbody>${report.versions.map((/** @type {any} */ each) => html`<tr><td data-head="Version"><a href=${to("model", each.model, each.version)}>${each.version}</a></td><td class="number" data-head="Error"><b>${percent(each.error, 1)}</b></td><td class="number" data-head="Likely (95%)">${percent(each.low, 1)} to ${percent(each.high, 1)}</td><td class="number" data-head="Labels">${each.labels}${each.held_out ? ` (${each.held_out} told)` : ""}</td></tr>`)}</tbody></table><//>${report.versions.some((/** @type {any} */ each) => each.held_out) && html`<p class="quiet">Told: the version learned from these labels later. Its error is that of cross-validation, which left them out.</p>`}` : html`<p>There is no model yet.</p>`}
    ${served?.by_label?.length > 0 && html`<h3>By label</h3><${Scroll} label="Errors by label"><table class="stacked"><thead><tr><th>Label</th><th class="number">Error</th><th class="number">Likely (95%)</th><th class="number">Have it</th><th class="number">Are given it</th></tr></thead>
      <tbody>${served.by_label.map((/** @type {any} */ each) => html`<tr key=${each.label}><td data-head="Label"><bdi>${each.label}</bdi></td><td class="number" data-head="Error"><b>${percent(each.error, 1)}</b></td><td class="number" data-head="Likely (95%)">${percent(each.low, 1)} to ${percent(each.high, 1)}</td><td class="number" data-head="Have it">${each.applies}</td><td class="number" data-head="Are given it">${each.given}</td></tr>`)}</tbody></table><//>`}
    <${Curve} versions=${report.versions} forecast=${report.forecast} />
    ${report.forecast && html`<p>${sentence(report.forecast.why)}.</p>`}
    ${automatic && html`<h3>Labeling automatically</h3><div class="row" role="group" aria-label="Precision to promise">${PRECISIONS.map((each) => html`<button key=${each} aria-pressed=${each === precision} onClick=${() => onPrecision(each)}>${percent(each)} right</button>`)}</div><p class="beneath">${sentence(automatic.why)}.</p>`}
    <h3>Download</h3><${Download} dataset=${dataset} model=${automatic?.model} automatic=${automatic?.possible ? automatic : null} />
  </section>`;
}
