/** @file The seat: one document, the buttons, the next. */

import { answerAgain, due } from "./again.js";
import { Answers, KEYED } from "./answers.js";
import { Several } from "./several.js";
import { get, part, post } from "./api.js";
import { REST, useClasses } from "./classes.js";
import { Document, Notes, content, isSeveral, snippet, worded } from "./document.js";
import { Guide } from "./guide.js";
import { History } from "./history.js";
import { Name } from "./name.js";
import { Saved, outboxOf } from "./outbox.js";
import { change, ownShare, project } from "./project.js";
import { Queue } from "./queue.js";
import { to } from "./route.js";
import { Side } from "./side.js";
import { toast } from "./toasts.js";
import { trainerOf } from "./training.js";
import { AGAIN, Empty, Key, Notice, Paper, Problem, Remedy, counted, html, percent, say, scrollPaper, stopped, useEffect, useInterval, useLayoutEffect, useKeys, useLoad, useRef, useState } from "./ui.js";

/** Milliseconds between two looks at the classes, which others may change. */
const LOOK = 10_000;
/** Probability from which the model does not waver. */
const SURE = 0.9;
const WHY = {
  random: ["random", "drawn by lot: such answers say how common each class is"],
  chosen: ["suggested", "the model learns most from it"],
  found: ["found", "by your search"],
  audit: ["audit", "one of the random sample that measures the model"],
  again: ["once more", "you answered it together with others: did that go well?"],
};

/** @param {{dataset: any, query: URLSearchParams}} props */
export function Label({ dataset, query }) {
  const [order, setOrder] = useState(query.get("find") ? `find:${query.get("find")}` : "mixed");
  const [last, setLast] = useState(/** @type {any} */ (null));
  const [panel, setPanel] = useState(/** @type {"" | "keys" | "guide" | "note"} */ (""));
  const outbox = outboxOf(dataset.id);
  const trainer = trainerOf(dataset.id);
  const classes = useClasses(dataset.id);
  const summary = useLoad(() => get(`v1/datasets/${part(dataset.id)}/annotations/summary`), [dataset.id]);
  // then the name says which documents come
  const ofPersons = dataset.overlap > 0 || Object.keys(dataset.shares).length > 0;
  const queue = useQueue(dataset.id, order, ofPersons ? project.value.by : "", trainer);
  const counts = useCounts(summary.value);
  const history = useRef(new History(dataset.id)).current;
  const current = queue.documents.value[0] ?? null;
  const assisted = project.value.mode === "assisted";
  const guess = useGuess(current, trainer, assisted);
  const by = project.value.by || undefined;
  const several = dataset.label_kind === "several";
  const [own, setOwn] = useState(/** @type {any[] | null} */ (null));
  // the model's labels stand there first, until the person changes one
  const picked = own ?? (assisted && several ? (guess.value?.label ?? []) : []);

  useEffect(() => {
    trainer.onVersion = () => queue.find || queue.renew();
    return () => void (trainer.onVersion = () => {});
  }, [queue]);

  useEffect(() => {
    const hear = (/** @type {StorageEvent} */ event) => {
      const told = outbox.answerOf(event);
      if (told?.document) queue.leaveOut(told.document);
    };
    addEventListener("storage", hear);
    return () => removeEventListener("storage", hear);
  }, [queue]);

  const answer = (/** @type {any} */ given) => {
    if (!current) return;
    outbox.add({ document: current.id, by, mode: project.value.mode, ...given });
    const before = history.labelOf(current.id), now = given.labels ?? given.label;
    history.push({ document: current, label: now });
    const first = current.why === "again" ? answerAgain(dataset.id, current.id, now) : null;
    if (before !== undefined && !first) counts.add(before, -1);
    if (now !== undefined && !first) counts.add(now, 1);
    setLast({ document: current, label: now, first: first?.label });
    setOwn(null);
    setPanel("");
    queue.advance();
    const next = queue.documents.value[0];
    say(`${now === undefined ? "Skipped" : worded(now)}. ${next ? `Next: ${snippet(next)}` : "Fetching documents"}`);
  };
  const drawn = current?.why === "again" ? undefined : (current?.drawn ?? undefined);
  const label = (/** @type {string | number} */ name) => answer({ label: name, drawn });
  const confirm = () => answer({ labels: picked, drawn });
  const undo = () => {
    const before = history.pop();
    if (!before) return toast("There is nothing to take back");
    outbox.add({ document: before.document.id, action: "undo", by });
    const first = before.document.why === "again" ? answerAgain(dataset.id, before.document.id) : null;
    if (before.label !== undefined && !first) counts.add(before.label, -1);
    queue.bringBack(before.document);
    setLast(null);
    setOwn(several && Array.isArray(before.label) ? before.label : null);
    say("Taken back");
  };
  const flag = () => {
    if (!current) return;
    outbox.add({ document: current.id, action: "flag", by });
    queue.change({ ...current, flagged: !current.flagged });
    toast(current.flagged ? "The mark is removed" : "Marked for others to look at");
  };
  const note = (/** @type {string} */ text) => {
    if (!current) return;
    outbox.add({ document: current.id, action: "note", note: text, by });
    queue.change({ ...current, notes: { ...current.notes, [by ?? ""]: text } });
    setPanel("");
    toast(text ? "The note is saved" : "The note is removed");
  };
  const tried = (/** @type {Promise<any>} */ change, /** @type {string} */ done) => change.then(() => toast(done), (error) => toast(error.message));
  const added = classes.loaded.value ? (/** @type {string[]} */ names) => tried(classes.add(names), `${names.length > 1 ? counted(names.length, "class") : names} added`) : undefined;
  const find = async () => {
    // who looks at what is found needs a key for what is something else
    if (!classes.integers) await classes.add([REST]).catch((error) => toast(error.message));
    await trainer.train();
  };
  useInterval(() => void classes.look().then((changed) => changed && toast("Somebody has changed the classes")), LOOK);
  const unused = classes.listed.value.filter(({ name }) => !counts.value[name] && !(name in dataset.classes));
  const open = (/** @type {"keys" | "guide" | "note"} */ name) => setPanel(panel === name ? "" : name);
  useKeys((event) => {
    const pressed = /** @type {HTMLElement} */ (event.target).closest("button, a, summary, [role=radio]");
    if (event.key === " " && !pressed) event.preventDefault(), answer({ action: "skip" });
    scrollPaper(event);
    if (event.key === "u") undo();
    const letters = classes.listed.value.length <= KEYED;
    if (letters && event.key === "f") flag();
    if (letters && event.key === "n") event.preventDefault(), open("note");
    if (letters && event.key === "h") open("guide");
    if (event.key === "?") open("keys");
    if (event.key === "Escape") setPanel("");
    if (event.key === "Enter" && assisted && !several && guess.value?.label !== undefined && !pressed && !event.defaultPrevented) label(guess.value.label);
  });

  return html`<h1 class="unseen">Label</h1><div class="seat">
    <section class="work" aria-label="Document">
      <${Toolbar} order=${order} onOrder=${setOrder} onOpen=${open} />
      ${panel === "keys" && html`<${Keys} onClose=${() => setPanel("")} />`}
      ${panel === "guide" && html`<${Guide} dataset=${dataset} classes=${classes.listed.value} onClose=${() => setPanel("")} />`}
      <${Name} needed=${ofPersons} />
      ${outbox.refused.value.map((text) => html`<${Notice} kind="error">${text}<//>`)}
      <${Problem} error=${summary.error ?? classes.error.value ?? (current ? null : queue.error.value)} />
      ${queue.trouble.value && html`<${Notice}>The model can suggest nothing, so these documents are random. ${stopped(queue.trouble.value.message)}<${Remedy} ...${queue.trouble.value} /><//>`}
      <div class="reading">${current ? html`<${Card} key=${current.id} document=${current} guess=${assisted ? guess.value : null} find=${queue.find} />` : html`<${Nothing} queue=${queue} dataset=${dataset.id} order=${order} onOrder=${setOrder} />`}</div>
      ${panel === "note" && current && html`<${Note} text=${current.notes?.[by ?? ""] ?? ""} onNote=${note} onClose=${() => setPanel("")} />`}
      ${several ? html`<${Several} classes=${classes.listed.value} picked=${picked} onPick=${setOwn} onConfirm=${confirm} integers=${classes.integers} onNew=${added} />` : html`<${Answers} classes=${classes.listed.value} guess=${assisted ? guess.value?.label : undefined} integers=${classes.integers} onLabel=${label} onNew=${added} />`}
      <div class="row steady">
        <button onClick=${() => answer({ action: "skip" })} disabled=${!current}><${Key}>space<//> Skip</button>
        <button onClick=${undo} disabled=${!history.answers.length}><${Key}>u<//> Undo</button>
        <button onClick=${flag} disabled=${!current} aria-pressed=${Boolean(current?.flagged)}><${Key}>f<//> Mark</button>
        <button onClick=${() => open("note")} disabled=${!current}><${Key}>n<//> Note</button>
        <${Reply} last=${last} /><${Saved} outbox=${outbox} />
      </div>
      ${unused.length > 0 && unused.length < classes.listed.value.length && html`<p class="row quiet beneath">No document has ${unused.map(({ name }) => html`<span class="row" key=${name}><b class="clip" dir="auto">${name}</b><button class="small" aria-label=${`Remove the class ${name}`} onClick=${() => tried(classes.remove(name), `${name} is removed`)}>Remove</button></span>`)}</p>`}
    </section>
    <${Side} dataset=${dataset} counts=${counts.value} trainer=${trainer} summary=${summary.value} answered=${history.answers} onBack=${(/** @type {any} */ document) => queue.bringBack(document)} onFind=${find} />
  </div>`;
}

/** @param {{document: any, guess: any, find: string}} props */
function Card({ document, guess, find }) {
  const [name, why] = WHY[/** @type {keyof typeof WHY} */ (document.why)];
  const wavers = guess && document.why === "chosen" && document.guess?.label === guess.label && (guess.probability ?? 0) < SURE;
  const rival = wavers ? document.guess?.rival : undefined;
  return html`<${Paper}>
    <p class="row quiet"><span class="tag" title=${why}>${name}</span><span class="clip">${document.id}</span><span class="why">${rival === undefined ? why : html`the model wavers between <b><bdi>${guess.label}</bdi></b> and <b><bdi>${rival}</bdi></b>`}</span>${document.differ && html`<span class="tag">voters differ</span>`}${document.flagged && html`<span class="tag bad">marked</span>`}
      ${guess && html`<span class="row-end">the model: <b><bdi>${worded(guess.label)}</bdi></b> ${guess.probability !== null && percent(guess.probability)}</span>`}</p>
    <${Document} document=${document} spans=${guess?.spans ?? []} find=${find} /><${Notes} notes=${document.notes} />
  <//>`;
}

/** What the model thought, after a blind answer; of a document that came once more what it was confirmed as. @param {{last: any}} props */
function Reply({ last }) {
  return html`<span class="reply quiet">${reply(last) ?? ""}</span>`;
}

/** @param {any} last */
function reply(last) {
  const guess = last?.document.guess;
  if (last?.label === undefined) return null;
  if (last.first !== undefined) return last.first === last.label ? "The same as before" : html`Before, together with others, it was <b><bdi>${worded(last.first)}</bdi></b>`;
  if (!guess || project.value.mode !== "blind") return null;
  const same = worded([guess.label].flat().sort()) === worded([last.label].flat().sort());
  return html`${same ? "The model agrees" : html`The model thought <b><bdi>${worded(guess.label)}</bdi></b>`}${guess.probability !== null ? ` (${percent(guess.probability)})` : ""}`;
}

/** @param {{order: string, onOrder: (order: string) => void, onOpen: (panel: "keys" | "guide") => void}} props */
function Toolbar({ order, onOrder, onOpen }) {
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
      <button aria-label="Guidelines" onClick=${() => onOpen("guide")}><${Key}>h<//> Guide</button>
      <button aria-label="Keys" onClick=${() => onOpen("keys")}><${Key}>?<//> Keys</button>
    </div>
  </div>`;
}

/** The text of a note. @param {{text: string, onNote: (text: string) => void, onClose: () => void}} props */
function Note({ text, onNote, onClose }) {
  const [written, setWritten] = useState(text);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => field.current?.focus(), []);
  const keep = (/** @type {Event} */ event) => (event.preventDefault(), onNote(written.trim()));
  return html`<form class="row note" onSubmit=${keep}><label class="row">Note <input ref=${field} name="note" maxlength="2000" value=${written} onInput=${(/** @type {any} */ event) => setWritten(event.target.value)} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && onClose()} /></label><button>Save</button><button type="button" onClick=${onClose}>Cancel</button></form>`;
}

/** @param {{onClose: () => void}} props */
function Keys({ onClose }) {
  const keys = [["1 … 9", "the class with that key; above nine classes type its name, Enter confirms; of several classes they toggle"], ["Enter", "what the model says, if you see it first"], ["space", "skip"], ["u", "undo, as often as you like"], ["f", "mark it for others to look at"], ["n", "write a note"], ["h", "guidelines and examples"], ["c", "add a class"], ["↑ ↓", "scroll a long document"], ["?", "these keys"]];
  return html`<dl class="card keys">${keys.map(([key, does]) => html`<div><dt><${Key}>${key}<//></dt><dd>${does}</dd></div>`)}<div><dt></dt><dd><button class="small" onClick=${onClose}>Close</button></dd></div></dl>`;
}

/** @param {{queue: Queue, dataset: string, order: string, onOrder: (order: string) => void}} props */
function Nothing({ queue, dataset, order, onOrder }) {
  if (!queue.done.value) return html`<${Paper}><p class="quiet">Fetching documents …</p><//>`;
  if (order !== "mixed") return html`<${Empty} title="No more documents contain this"><button onClick=${() => onOrder("mixed")}>Back to the mix</button><//>`;
  return html`<${Finished} dataset=${dataset} onAgain=${() => queue.lookAgain()} />`;
}

/** The end, unless others are still at work on the last documents, or have shares of their own. @param {{dataset: string, onAgain: () => void}} props */
function Finished({ dataset, onAgain }) {
  const path = `v1/datasets/${part(dataset)}`;
  const open = useLoad(async () => {
    await outboxOf(dataset).settled();
    const [all, own] = await Promise.all([{}, ownShare()].map((share) => get(`${path}/documents`, { state: "open", ...share, limit: 1 })));
    return { all: all.total, own: own.total };
  }, [dataset]);
  if (!open.value) return html`<${Paper}><${Problem} error=${open.error} /><p class="quiet">Fetching documents …</p><//>`;
  const { all, own: left } = open.value;
  if (left) return html`<${Empty} title="Others have the last documents"><p>${counted(left, "document")} that other people were given ${left === 1 ? "is" : "are"} without an answer. What they leave becomes free after ten minutes.</p><button onClick=${onAgain}>Look again</button><//>`;
  if (all) return html`<${Empty} title="Your share is answered"><p>${counted(all, "document")} in the shares of others ${all === 1 ? "is" : "are"} without an answer. <a href=${to("people", dataset)}>See who has which share</a>.</p><//>`;
  return html`<${Empty} title="All documents are answered"><p>Every document has a label, or was skipped. The model learns from them; see what it <a href=${to("doubts")}>doubts</a>.</p><//>`;
}

/** @param {string} dataset @param {string} order @param {string} by whose documents these are @param {any} trainer */
function useQueue(dataset, order, by, trainer) {
  const fresh = () => new Queue(dataset, trainer.model, order, by, () => trainer.version.value !== null);
  const [queue, setQueue] = useState(fresh);
  useEffect(() => {
    const next = queue.order === order && queue.by === by ? queue : fresh();
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
  }, [order, by]);
  return queue;
}

/** The labels of each class, counted on as answers are given. @param {any} summary */
function useCounts(summary) {
  const [own, setOwn] = useState(/** @type {Record<string, number>} */ ({}));
  const add = (/** @type {any} */ given, /** @type {number} */ by) => {
    for (const label of [given].flat()) setOwn((before) => ({ ...before, [label]: (before[label] ?? 0) + by }));
  };
  const value = { ...(summary?.classes ?? {}) };
  for (const [label, count] of Object.entries(own)) value[label] = Math.max(0, (value[label] ?? 0) + count);
  return { value, add };
}

/** What the model says of a document, with the words that speak for it. @param {any} document @param {any} trainer @param {boolean} wanted */
function useGuess(document, trainer, wanted) {
  const version = trainer.version.value?.version;
  return useLoad(async () => {
    if (!wanted || !document || !version) return null;
    const asked = { documents: [content(document)] }, path = `v1/models/${part(trainer.model)}`;
    const [found, predicted] = await Promise.all([post(`${path}/explain`, { ...asked, n: 6 }), isSeveral(document) ? post(`${path}/predict`, asked) : null]);
    const explained = found.documents[0];
    const sign = explained.class === explained.label ? 1 : -1;
    const spans = explained.contributions.filter((/** @type {any} */ each) => each.spans && sign * each.contribution > 0).flatMap((/** @type {any} */ each) => each.spans);
    if (predicted) return { label: [predicted.labels[0]].flat(), probability: null, spans };
    return { label: explained.label, probability: document.guess?.probability ?? null, spans };
  }, [document?.id, version, wanted]);
}

