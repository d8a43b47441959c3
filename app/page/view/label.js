/** @file The seat: one document, the buttons, the next. */

import { answerAgain, due } from "./again.js";
import { Answers } from "./answers.js";
import { get, part, post } from "./api.js";
import { areIntegers, classesOf, forget } from "./classes.js";
import { Document, content } from "./document.js";
import { History } from "./history.js";
import { outboxOf } from "./outbox.js";
import { change, project } from "./project.js";
import { Queue } from "./queue.js";
import { to } from "./route.js";
import { Side } from "./side.js";
import { trainerOf } from "./training.js";
import { Empty, Key, Notice, Paper, Problem, Remedy, counted, html, percent, say, scrollPaper, stopped, useEffect, useInterval, useKeys, useLoad, useRef, useState } from "./ui.js";

/** Milliseconds until what failed is tried again. */
const AGAIN = 2000;

const WHY = {
  random: ["random", "drawn at random: these labels say how common each class is"],
  chosen: ["suggested", "the model learns most from documents like this"],
  found: ["found", "found by your search"],
  audit: ["audit", "part of a random sample that measures the model"],
  again: ["once more", "you answered this together with others; it comes again to see how well that went"],
};

/** @param {{dataset: any}} props */
export function Label({ dataset }) {
  const [order, setOrder] = useState("mixed");
  const [added, setAdded] = useState(/** @type {string[]} */ ([]));
  const [last, setLast] = useState(/** @type {any} */ (null));
  const [help, setHelp] = useState(false);
  const outbox = outboxOf(dataset.id);
  const trainer = trainerOf(dataset.id);
  const summary = useLoad(() => get(`v1/datasets/${part(dataset.id)}/annotations/summary`), [dataset.id]);
  const queue = useQueue(dataset.id, order, trainer);
  const counts = useCounts(summary.value);
  const history = useRef(new History(dataset.id)).current;
  const current = queue.documents.value[0] ?? null;
  const classes = summary.value ? classesOf(dataset, summary.value, added) : [];
  const assisted = project.value.mode === "assisted";
  const guess = useGuess(current, trainer, assisted);

  useInterval(() => trainer.look(outbox.sequence.value || summary.value?.sequence || 0, total(counts.value)).catch(() => {}), 1000);
  useEffect(() => {
    trainer.onVersion = () => queue.find || queue.renew();
    return () => void (trainer.onVersion = () => {});
  }, [queue]);

  useEffect(() => {
    const hear = (/** @type {StorageEvent} */ event) => {
      const told = outbox.answerOf(event);
      if (told) queue.leaveOut(told.document);
    };
    addEventListener("storage", hear);
    return () => removeEventListener("storage", hear);
  }, [queue]);

  const answer = (/** @type {any} */ given) => {
    if (!current) return;
    const told = { document: current.id, by: project.value.by || undefined, mode: project.value.mode, ...given };
    outbox.add(told);
    trainer.touch();
    history.push({ document: current, label: given.label });
    const first = current.why === "again" ? answerAgain(dataset.id, current.id, given.label) : null;
    if (given.label !== undefined && !first) counts.add(given.label, 1);
    setLast({ document: current, label: given.label, first: first?.label });
    queue.advance();
  };
  const label = (/** @type {string | number} */ name) => answer({ label: name, drawn: current?.why === "again" ? undefined : (current?.drawn ?? undefined) });
  const undo = () => {
    const before = history.pop();
    if (!before) return say("There is nothing to take back");
    outbox.add({ document: before.document.id, action: "undo", by: project.value.by || undefined });
    const first = before.document.why === "again" ? answerAgain(dataset.id, before.document.id) : null;
    if (before.label !== undefined && !first) counts.add(before.label, -1);
    queue.bringBack(before.document);
    setLast(null);
    say("Taken back");
  };
  const addClass = (/** @type {string} */ name) => setAdded([...added, name]);
  const removeClass = (/** @type {string} */ name) => {
    forget(dataset.id, name);
    setAdded(added.filter((each) => each !== name));
    say(`${name} is removed`);
  };
  const unused = classes.map(String).filter((name) => !counts.value[name] && !(name in dataset.classes));
  useKeys((event) => {
    if (event.key === " " && !/** @type {HTMLElement} */ (event.target).closest("button, a, summary, [role=radio]")) event.preventDefault(), answer({ action: "skip" });
    scrollPaper(event);
    if (event.key === "u") undo();
    if (event.key === "?") setHelp(!help);
    if (event.key === "Escape") setHelp(false);
    if (event.key === "Enter" && assisted && guess.value?.label !== undefined && !/** @type {HTMLElement} */ (event.target).closest("button, a, summary")) label(guess.value.label);
  });

  return html`<h1 class="unseen">Label</h1><div class="seat">
    <section class="work" aria-label="Document">
      <${Toolbar} order=${order} onOrder=${setOrder} onHelp=${() => setHelp(!help)} />
      ${help && html`<${Help} onClose=${() => setHelp(false)} />`}
      ${outbox.refused.value.map((text) => html`<${Notice} kind="error">${text}<//>`)}
      <${Problem} error=${summary.error ?? (current ? null : queue.error.value)} />
      ${queue.trouble.value && html`<${Notice}>The model can suggest nothing, so these documents are random. ${stopped(queue.trouble.value.message)}<${Remedy} ...${queue.trouble.value} /><//>`}
      ${current ? html`<${Card} key=${current.id} document=${current} guess=${assisted ? guess.value : null} />` : html`<${Nothing} queue=${queue} dataset=${dataset.id} order=${order} onOrder=${setOrder} />`}
      <${Answers} classes=${classes} guess=${assisted ? guess.value?.label : undefined} integers=${areIntegers(summary.value)} onLabel=${label} onNew=${summary.value ? addClass : undefined} />
      <div class="row steady">
        <button onClick=${() => answer({ action: "skip" })} disabled=${!current}><${Key}>space<//> Skip</button>
        <button onClick=${undo} disabled=${!history.answers.length}><${Key}>u<//> Undo</button>
        <span class="row-end quiet" id="saved" role="status">${outbox.text}</span>
      </div>
      <${Reply} last=${last} />
      ${unused.length > 0 && html`<p class="row quiet">No document has ${unused.map((name) => html`<span class="row" key=${name}><b class="clip" dir="auto">${name}</b><button class="small" aria-label=${`Remove the class ${name}`} onClick=${() => removeClass(name)}>remove</button></span>`)}</p>`}
    </section>
    <${Side} dataset=${dataset} counts=${counts.value} trainer=${trainer} summary=${summary.value} />
  </div>`;
}

/** @param {{document: any, guess: any}} props */
function Card({ document, guess }) {
  const [name, why] = WHY[/** @type {keyof typeof WHY} */ (document.why)];
  return html`<${Paper}>
    <p class="row quiet"><span class="tag" title=${why}>${name}</span><span class="clip">${document.id}</span>
      ${guess && html`<span class="row-end">the model: <b><bdi>${guess.label}</bdi></b> ${guess.probability !== null && percent(guess.probability)}</span>`}</p>
    <${Document} document=${document} spans=${guess?.spans ?? []} />
  <//>`;
}

/** What the model thought, after a blind answer; of a document that came once more what it was confirmed as. @param {{last: any}} props */
function Reply({ last }) {
  return html`<p class="reply quiet">${reply(last) ?? "\u00a0"}</p>`;
}

/** @param {any} last */
function reply(last) {
  const guess = last?.document.guess;
  if (last?.label === undefined) return null;
  if (last.first !== undefined) return last.first === last.label ? "The same as before" : html`Before, together with others, it was <b><bdi>${last.first}</bdi></b>`;
  if (!guess || project.value.mode !== "blind") return null;
  return html`${guess.label === last.label ? "The model agrees" : html`The model thought <b><bdi>${guess.label}</bdi></b>`}${guess.probability !== null ? ` (${percent(guess.probability)})` : ""}`;
}

/** @param {{order: string, onOrder: (order: string) => void, onHelp: () => void}} props */
function Toolbar({ order, onOrder, onHelp }) {
  const [text, setText] = useState(order.startsWith("find:") ? order.slice(5) : "");
  const find = (/** @type {Event} */ event) => {
    event.preventDefault();
    onOrder(text.trim() ? `find:${text.trim()}` : "mixed");
    /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
  };
  const mode = project.value.mode;
  return html`<div class="toolbar">
    <form class="row" role="search" onSubmit=${find}><input type="search" name="find" value=${text} placeholder="search for a rare class" aria-label="Search for documents" onInput=${(/** @type {any} */ event) => setText(event.target.value)} />
      <button>Find</button>${order !== "mixed" && html`<button type="button" aria-label="Back to the mix" onClick=${() => (setText(""), onOrder("mixed"))}>Back</button>`}</form>
    <div class="row row-end">
      <label class="row"><span class="quiet">Model's answer</span>
        <select name="mode" value=${mode} onChange=${(/** @type {any} */ event) => change({ mode: event.target.value })}><option value="blind">after mine</option><option value="assisted">before mine</option></select></label>
      <label class="row"><span class="quiet">You</span><input name="by" class="short" value=${project.value.by} placeholder="your name" onChange=${(/** @type {any} */ event) => change({ by: event.target.value.trim().slice(0, 100) })} /></label>
      <button aria-label="Keys" onClick=${onHelp}><${Key}>?<//></button>
    </div>
  </div>`;
}

/** @param {{onClose: () => void}} props */
function Help({ onClose }) {
  const keys = [["1 … 9", "the class with that number; above nine classes type its name, Enter confirms"], ["Enter", "what the model says, if you see it first"], ["space", "skip"], ["u", "undo, as often as you like"], ["↑ ↓", "scroll a long document"], ["?", "these keys"]];
  return html`<dl class="card keys">${keys.map(([key, does]) => html`<div><dt><${Key}>${key}<//></dt><dd>${does}</dd></div>`)}<div><dt></dt><dd><button class="small" onClick=${onClose}>Close</button></dd></div></dl>`;
}

/** @param {{queue: Queue, dataset: string, order: string, onOrder: (order: string) => void}} props */
function Nothing({ queue, dataset, order, onOrder }) {
  if (!queue.done.value) return html`<${Paper}><p class="quiet">Fetching documents …</p><//>`;
  if (order !== "mixed") return html`<${Empty} title="No more documents contain this"><button onClick=${() => onOrder("mixed")}>Back to the mix</button><//>`;
  return html`<${Finished} dataset=${dataset} onAgain=${() => queue.lookAgain()} />`;
}

/** The end, unless others are still at work on the last documents. @param {{dataset: string, onAgain: () => void}} props */
function Finished({ dataset, onAgain }) {
  const summary = useLoad(() => outboxOf(dataset).settled().then(() => get(`v1/datasets/${part(dataset)}/annotations/summary`)), [dataset]);
  if (!summary.value) return html`<${Paper}><${Problem} error=${summary.error} /><p class="quiet">Fetching documents …</p><//>`;
  const left = summary.value.documents - summary.value.labeled - summary.value.skipped;
  if (left) return html`<${Empty} title="Others have the last documents"><p>${counted(left, "document")} that other people were given ${left === 1 ? "is" : "are"} without an answer. What they leave becomes free after ten minutes.</p><button onClick=${onAgain}>Look again</button><//>`;
  return html`<${Empty} title="All documents are answered"><p>Every document has a label, or was skipped. The model learns from them; see what it <a href=${to("doubts")}>doubts</a>.</p><//>`;
}

/** @param {string} dataset @param {string} order @param {any} trainer */
function useQueue(dataset, order, trainer) {
  const fresh = () => new Queue(dataset, trainer.model, order, () => trainer.version.value !== null);
  const [queue, setQueue] = useState(fresh);
  useEffect(() => {
    const next = queue.order === order ? queue : fresh();
    setQueue(next);
    const ids = order === "mixed" ? due(dataset).map((each) => each.id) : [];
    const begin = async () => {
      try {
        await trainer.begin();
        await next.fill();
        if (ids.length) await next.mixIn(ids);
      } catch (error) {
        next.error.value = error;
        if (!next.closed) setTimeout(begin, AGAIN);
      }
    };
    begin();
    return () => void (next.closed = true);
  }, [order]);
  return queue;
}

/** The labels of each class, counted on as answers are given. @param {any} summary */
function useCounts(summary) {
  const [own, setOwn] = useState(/** @type {Record<string, number>} */ ({}));
  const add = (/** @type {string | number} */ label, /** @type {number} */ by) => setOwn((before) => ({ ...before, [label]: (before[label] ?? 0) + by }));
  const value = { ...(summary?.classes ?? {}) };
  for (const [label, count] of Object.entries(own)) value[label] = Math.max(0, (value[label] ?? 0) + count);
  return { value, add };
}

/** What the model says of a document, with the words that speak for it. @param {any} document @param {any} trainer @param {boolean} wanted */
function useGuess(document, trainer, wanted) {
  const version = trainer.version.value?.version;
  return useLoad(async () => {
    if (!wanted || !document || !version) return null;
    const found = await post(`v1/models/${part(trainer.model)}/explain`, { documents: [content(document)], n: 6 });
    const explained = found.documents[0];
    const sign = explained.class === explained.label ? 1 : -1;
    const spans = explained.contributions.filter((/** @type {any} */ each) => each.spans && sign * each.contribution > 0).flatMap((/** @type {any} */ each) => each.spans);
    return { label: explained.label, probability: document.guess?.probability ?? null, spans };
  }, [document?.id, version, wanted]);
}

/** @param {Record<string, number>} counts */
const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0);
