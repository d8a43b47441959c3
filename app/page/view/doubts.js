/** @file Labels to look at again: what a model thinks that was not told them. */

import { modelOf, part, post } from "./api.js";
import { Document } from "./document.js";
import { outboxOf } from "./outbox.js";
import { project } from "./project.js";
import { to } from "./route.js";
import { Empty, Key, Notice, Paper, Problem, html, percent, say, scrollPaper, useKeys, useLoad, useState } from "./ui.js";

/** @param {{parts: string[]}} props */
export function Doubts({ parts }) {
  const dataset = parts[0];
  const model = project.value.model;
  const found = useLoad(async () => {
    await outboxOf(dataset).settled();
    return (await modelOf(model)) && post(`v1/models/${part(model)}/doubts`, { dataset, n: 50, include: ["document"] });
  }, [dataset, model]);
  const [place, setPlace] = useState(0);
  const doubts = found.value?.doubts ?? [];
  const current = doubts[place];
  const answer = (/** @type {any} */ label) => {
    if (!current) return;
    outboxOf(dataset).add({ document: current.id, label, mode: "assisted", by: project.value.by || undefined });
    say(label === current.label ? "Kept" : `Changed to ${label}`);
    setPlace(place + 1);
  };
  const undo = () => {
    if (!place) return;
    outboxOf(dataset).add({ document: doubts[place - 1].id, action: "undo", by: project.value.by || undefined });
    setPlace(place - 1);
    say("Taken back");
  };
  useKeys((event) => {
    if (current && event.key === "1") answer(current.label);
    if (current && event.key === "2") answer(current.likelier);
    scrollPaper(event);
    if (event.key === "u") undo();
  });
  if (found.error) return html`<h1>Doubts</h1><${Problem} error=${found.error} />`;
  if (found.loaded && !found.value) return html`<h1>Doubts</h1><${Empty} title="There is no model yet"><p>Doubts come from a model that learned from your labels.</p><a class="button primary" href=${to("label", dataset)}>Label</a><//>`;
  if (!found.value) return html`<p class="quiet">Looking for doubts …</p>`;
  return html`<h1>Doubts</h1>
    <p>Labels that look wrong to a model which was not told them. The most doubtful comes first.</p>
    ${found.value.warnings.map((/** @type {string} */ warning) => html`<${Notice}>${warning}<//>`)}
    ${current ? html`<${Doubt} doubt=${current} place=${place} count=${doubts.length} onAnswer=${answer} />` : html`<${Empty} title=${doubts.length ? "That was the last doubt" : "No label looks wrong"}><p>${found.value.n_labeled} labels were looked at.</p><a class="button primary" href=${to("label", dataset)}>Go on labeling</a><//>`}
    <div class="row steady"><button onClick=${undo} disabled=${!place}><${Key}>u<//> Undo</button><span class="row-end quiet" id="saved" role="status">${outboxOf(dataset).text}</span></div>`;
}

/** @param {{doubt: any, place: number, count: number, onAnswer: (label: any) => void}} props */
function Doubt({ doubt, place, count, onAnswer }) {
  const why = doubt.why === "duplicate" ? html`nearly the same as <b>${doubt.other}</b>, which is <b>${doubt.likelier}</b>` : html`its label has a probability of ${percent(doubt.probability)}`;
  return html`<${Paper} key=${doubt.id}><p class="row quiet"><span class="tag">${place + 1} of ${count}</span><span class="clip">${doubt.id}</span><span class="row-end">${why}</span></p><${Document} document=${doubt.document} /><//>
    <div class="answers"><button class="answer" onClick=${() => onAnswer(doubt.label)}><${Key}>1<//><span class="clip">keep ${doubt.label}</span></button><button class="answer" onClick=${() => onAnswer(doubt.likelier)}><${Key}>2<//><span class="clip">change to ${doubt.likelier}</span></button></div>`;
}
