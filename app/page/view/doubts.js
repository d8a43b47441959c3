/** @file Labels to look at again: what a model thinks that was not told them. */

import { get, modelOf, part, post } from "./api.js";
import { classesOf } from "./classes.js";
import { Document } from "./document.js";
import { outboxOf } from "./outbox.js";
import { project } from "./project.js";
import { to } from "./route.js";
import { Empty, Key, Notice, Paper, Problem, html, percent, say, scrollPaper, useKeys, useLoad, useRef, useState } from "./ui.js";

/** @param {{dataset: any}} props */
export function Doubts({ dataset }) {
  const model = project.value.model;
  const outbox = outboxOf(dataset.id);
  const found = useLoad(async () => {
    await outbox.settled();
    return (await modelOf(model)) && post(`v1/models/${part(model)}/doubts`, { dataset: dataset.id, n: 50, include: ["document"] });
  }, [dataset.id, model]);
  const summary = useLoad(() => get(`v1/datasets/${part(dataset.id)}/annotations/summary`), [dataset.id]);
  const answered = useRef(/** @type {Set<string>} */ (new Set())).current;
  const [place, setPlace] = useState(0);
  const doubts = found.value?.doubts ?? [];
  const current = doubts[place];
  const answer = (/** @type {any} */ label) => {
    if (!current) return;
    outbox.add({ document: current.id, label, mode: "assisted", by: project.value.by || undefined });
    answered.add(current.id);
    say(label === current.label ? "Kept" : `Changed to ${label}`);
    setPlace(place + 1);
  };
  const undo = () => {
    if (!place) return;
    const { id } = doubts[place - 1];
    if (answered.delete(id)) outbox.add({ document: id, action: "undo", by: project.value.by || undefined });
    setPlace(place - 1);
    say("Taken back");
  };
  const leave = () => {
    if (current) say("Left as it is"), setPlace(place + 1);
  };
  useKeys((event) => {
    if (event.key === " " && current && !/** @type {HTMLElement} */ (event.target).closest("button, a")) event.preventDefault(), leave();
    if (current && event.key === "1") answer(current.label);
    if (current && event.key === "2") answer(current.likelier);
    scrollPaper(event);
    if (event.key === "u") undo();
  });
  if (found.error) return html`<h1>Doubts</h1><${Problem} error=${found.error} />`;
  if (found.loaded && !found.value) return html`<h1>Doubts</h1><${Empty} title="There is no model yet"><p>Doubts come from a model that learned from your labels.</p><a class="button primary" href=${to("label", dataset.id)}>Label</a><//>`;
  if (!found.value) return html`<p class="quiet">Looking for doubts …</p>`;
  return html`<h1>Doubts</h1>
    <p>Labels that look wrong to a model which was not told them. The most doubtful comes first.</p>
    ${found.value.warnings.map((/** @type {string} */ warning) => html`<${Notice}>${warning}<//>`)}
    ${current ? html`<${Doubt} doubt=${current} classes=${summary.value ? classesOf(dataset, summary.value) : []} place=${place} count=${doubts.length} onAnswer=${answer} />` : html`<${Empty} title=${doubts.length ? "That was the last doubt" : "No label looks wrong"}><p>${found.value.n_labeled} labels were looked at.</p><a class="button primary" href=${to("label", dataset.id)}>Go on labeling</a><//>`}
    <div class="row steady"><button onClick=${leave} disabled=${!current}><${Key}>space<//> Not sure</button><button onClick=${undo} disabled=${!place}><${Key}>u<//> Undo</button><span class="row-end quiet" id="saved" role="status">${outbox.text}</span></div>`;
}

/** @param {{doubt: any, classes: (string | number)[], place: number, count: number, onAnswer: (label: any) => void}} props */
function Doubt({ doubt, classes, place, count, onAnswer }) {
  const others = classes.filter((label) => label !== doubt.label && label !== doubt.likelier);
  const why = doubt.why === "duplicate" ? html`nearly the same as <b>${doubt.other}</b>, which is <b><bdi>${doubt.likelier}</bdi></b>` : html`its label has a probability of ${percent(doubt.probability)}`;
  return html`<${Paper} key=${doubt.id}><p class="row quiet"><span class="tag">${place + 1} of ${count}</span><span class="clip">${doubt.id}</span><span class="row-end">${why}</span></p><${Document} document=${doubt.document} /><//>
    <div class="answers"><button class="answer" onClick=${() => onAnswer(doubt.label)}><${Key}>1<//><span class="clip">keep <bdi>${doubt.label}</bdi></span></button><button class="answer" onClick=${() => onAnswer(doubt.likelier)}><${Key}>2<//><span class="clip">change to <bdi>${doubt.likelier}</bdi></span></button>
    ${others.length > 0 && html`<select class="answer" name="other" aria-label="Another class" value="" onChange=${(/** @type {any} */ event) => onAnswer(others[event.target.value])}><option value="">another class …</option>${others.map((label, k) => html`<option key=${label} value=${k}>${label}</option>`)}</select>`}</div>`;
}
