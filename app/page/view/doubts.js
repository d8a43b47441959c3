/** @file Labels to look at again: what a model thinks that was not told them. */

import { modelOf, part, post } from "./api.js";
import { useClasses } from "./classes.js";
import { Document, snippet, worded } from "./document.js";
import { Saved, outboxOf } from "./outbox.js";
import { project } from "./project.js";
import { to } from "./route.js";
import { trainerOf } from "./training.js";
import { Empty, Key, Notice, Paper, Problem, counted, html, percent, say, scrollPaper, useKeys, useLoad, useRef, useState } from "./ui.js";

/** @param {{dataset: any}} props */
export function Doubts({ dataset }) {
  const model = project.value.model;
  const outbox = outboxOf(dataset.id);
  const several = dataset.label_kind === "several";
  const found = useLoad(async () => {
    await outbox.settled();
    const seen = trainerOf(dataset.id).version.value, known = seen ? null : await modelOf(model);
    const served = seen ?? known?.versions.find((/** @type {any} */ each) => each.version === known.served);
    // a version that left no label out, as one of one class, has no doubts
    return served && (served.held_out || several) && post(`v1/models/${part(model)}/doubts`, { dataset: dataset.id, n: 50, include: ["document"] });
  }, [dataset.id, model]);
  const classes = useClasses(dataset.id);
  const answered = useRef(/** @type {Set<string>} */ (new Set())).current;
  const given = useRef(/** @type {Map<string, any[]>} */ (new Map())).current;
  const [place, setPlace] = useState(0);
  // of which only some labels are known, an answer here would say too much
  const doubts = (found.value?.doubts ?? []).filter((/** @type {any} */ each) => !several || each.document.labels);
  const current = doubts[place] && (several ? ofSeveral(doubts[place], given.get(doubts[place].id)) : doubts[place]);
  const answer = (/** @type {any} */ label) => {
    if (!current) return;
    // who looks at a label again in view of what speaks against it decides, whatever others answered
    outbox.add({ document: current.id, ...(several ? { labels: label } : { label }), action: "settle", mode: "assisted", by: project.value.by || undefined });
    answered.add(current.id);
    if (several) given.set(current.id, label);
    setPlace(place + 1);
    const next = doubts[place + 1];
    say(`${label === current.label ? "Kept" : `Changed to ${worded(label)}`}. ${next ? `Next: ${snippet(next.document)}` : ""}`);
  };
  const undo = () => {
    if (!place) return;
    const { id } = doubts[place - 1];
    given.delete(id);
    if (answered.delete(id)) outbox.add({ document: id, action: "undo", by: project.value.by || undefined });
    setPlace(place - 1);
    say("Taken back");
  };
  const leave = () => {
    if (current) say("Left as it is"), setPlace(place + 1);
  };
  useKeys((event) => {
    if (event.key === " " && current && !/** @type {HTMLElement} */ (event.target).closest("button, a")) event.preventDefault(), leave();
    const keyed = several ? undefined : classes.listed.value.find(({ key }) => key === event.key);
    if (keyed) answer(keyed.name);
    if (event.key === "Enter" && current && !/** @type {HTMLElement} */ (event.target).closest("button, a")) answer(current.label);
    scrollPaper(event);
    if (event.key === "u") undo();
  });
  if (found.error) return html`<h1>Doubts</h1><${Problem} error=${found.error} />`;
  if (found.loaded && !found.value) return html`<h1>Doubts</h1><${Empty} title="No model has doubts yet"><p>Doubts come from a model that learned from labels of two classes and more.</p><a class="button primary" href=${to("label", dataset.id)}>Label</a><//>`;
  if (!found.value) return html`<h1>Doubts</h1><p class="quiet">Looking for doubts …</p>`;
  return html`<h1>Doubts</h1>
    <p>Labels that look wrong to a model which was not told them. The most doubtful comes first.</p>
    ${found.value.warnings.map((/** @type {string} */ warning) => html`<${Notice}>${warning}<//>`)}
    ${current ? html`<${Doubt} doubt=${current} classes=${classes.listed.value} place=${place} count=${doubts.length} onAnswer=${answer} />` : html`<${Empty} title=${doubts.length ? "That was the last doubt" : "No label looks wrong"}><p>${counted(found.value.n_labeled, "label")} were looked at.</p><a class="button primary" href=${to("label", dataset.id)}>Go on labeling</a><//>`}
    <div class="row steady"><button onClick=${leave} disabled=${!current}><${Key}>space<//> Not sure</button><button onClick=${undo} disabled=${!place}><${Key}>u<//> Undo</button><${Saved} outbox=${outbox} /></div>`;
}

/** A doubt about one of several labels, as one about all of them: as they are, or with this one changed.
 * @param {any} doubt @param {any[]} [answered] the labels that were given here before */
function ofSeveral(doubt, answered) {
  const label = answered ?? doubt.document.labels, { label: doubted } = doubt;
  return { ...doubt, doubted, label, likelier: label.includes(doubted) ? label.filter((/** @type {any} */ each) => each !== doubted) : [...label, doubted] };
}

/** @param {{doubt: any, classes: import("./classes.js").Class[], place: number, count: number, onAnswer: (label: any) => void}} props */
function Doubt({ doubt, classes, place, count, onAnswer }) {
  const keyOf = (/** @type {any} */ label) => classes.find(({ name }) => name === label)?.key;
  const several = doubt.doubted !== undefined;
  const others = several ? [] : classes.filter(({ name }) => name !== doubt.label && name !== doubt.likelier);
  const same = html`nearly the same as <b>${doubt.other}</b>, which`;
  const why = several ? html`${doubt.why === "duplicate" ? html`${same} ${doubt.applies ? "is not" : "is"} <b><bdi>${doubt.doubted}</bdi></b>` : html`that it is ${doubt.applies ? "" : "not "}<b><bdi>${doubt.doubted}</bdi></b> has a probability of ${percent(doubt.probability)}`}` : doubt.why === "duplicate" ? html`${same} is <b><bdi>${doubt.likelier}</bdi></b>` : html`${doubt.why === "votes" ? "with the votes" : ""} its label has a probability of ${percent(doubt.probability)}`;
  const called = html`<bdi>${several ? doubt.doubted : worded(doubt.label)}</bdi>`;
  const kept = several ? html`it is ${doubt.applies ? "" : "not "}${called}` : html`keep ${called}`;
  const changed = several ? html`it is ${doubt.applies ? "not " : ""}${called}` : html`change to <bdi>${worded(doubt.likelier)}</bdi>`;
  return html`<${Paper} key=${doubt.id}><p class="row quiet"><span class="tag">${place + 1} of ${count}</span><span class="clip">${doubt.id}</span><span class="row-end">${why}</span></p><${Document} document=${doubt.document} /><//>
    <div class="answers"><button class="answer" onClick=${() => onAnswer(doubt.label)}><${Key}>${keyOf(doubt.label) ?? "Enter"}<//><span class="clip">${kept}</span></button><button class="answer guessed" onClick=${() => onAnswer(doubt.likelier)}>${keyOf(doubt.likelier) && html`<${Key}>${keyOf(doubt.likelier)}<//>`}<span class="clip">${changed}</span></button>
    ${others.length > 0 && html`<select class="answer" name="other" aria-label="Another class" value="" onChange=${(/** @type {any} */ event) => onAnswer(others[event.target.value].name)}><option value="">another class …</option>${others.map(({ name }, k) => html`<option key=${name} value=${k}>${name}</option>`)}</select>`}</div>`;
}
