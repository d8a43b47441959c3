/** @file Answers on their way to the service: kept in the browser until they are durable there, sent again until they arrive, each once. */

import { Refusal, part, post } from "./api.js";
import { identifier } from "./project.js";
import { keysFrom, remove, store, stored } from "./stored.js";
import { computed, counted, html, signal, stopped } from "./ui.js";

const MOST = 200;
const MOST_TOLD = 3;
const PATIENCE = [500, 1000, 2000, 5000];
/** What does not get better by waiting. */
const FINAL = [404, 413, 422];

/** @typedef {{document: string, action?: string, label?: string | number, labels?: (string | number)[], note?: string, batch?: string, drawn?: string, by?: string, mode?: string}} Given */
/** @typedef {Partial<Given> & {id: string, at: string, undo_of?: string}} Answer an answer, or a batch of them to take back */

/** Answers of one dataset that are not known to be durable. Each has an entry of its own in the storage, so that tabs do not disturb each other. */
export class Outbox {
  /** @param {string} dataset */
  constructor(dataset) {
    this.dataset = dataset;
    this.prefix = `halfmoon.answer.${dataset}.`;
    this.saved = signal(0);
    this.sequence = signal(0);
    this.refused = signal(/** @type {string[]} */ ([]));
    this.trouble = signal("");
    this.waiting = signal(/** @type {Answer[]} */ ([]));
    this.text = computed(() => (this.trouble.value ? `${stopped(this.trouble.value)} ${counted(this.waiting.value.length, "answer")} wait here. Nothing is lost.` : this.waiting.value.length ? "Saving …" : "All saved"));
    /** when a person answered last */
    this.answered = performance.now();
    this.sending = false;
    this.failures = 0;
    this.most = MOST;
    this.#restore();
    if (this.waiting.value.length) this.flush();
  }

  /** Keep an answer, and send it. @param {Given} given */
  add(given) {
    this.answered = performance.now();
    this.#keep({ ...given, id: identifier(), at: new Date().toISOString() });
  }

  /** Take back all answers of a batch. @param {string} batch */
  takeBack(batch) {
    this.#keep({ undo_of: batch, id: identifier(), at: new Date().toISOString() });
  }

  /** @param {Answer} answer */
  #keep(answer) {
    store(this.prefix + answer.id, answer);
    this.waiting.value = [...this.waiting.value, answer];
    this.flush();
  }

  /** The answer that another tab has given, if an event of the storage is one. @param {StorageEvent} event @returns {Answer | null} */
  answerOf(event) {
    return event.key?.startsWith(this.prefix) && event.newValue ? JSON.parse(event.newValue) : null;
  }

  /** Wait until all answers have arrived; throws Refusal while they do not get through. */
  async settled() {
    while (this.waiting.value.length) {
      if (this.trouble.value) throw new Refusal(0, this.trouble.value);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async flush() {
    if (this.sending || !this.waiting.value.length) return;
    this.sending = true;
    const batch = this.#next();
    try {
      const body = batch[0].undo_of ? { undo_of: batch[0].undo_of } : { annotations: batch };
      const { sequence } = await post(`v1/datasets/${part(this.dataset)}/annotations`, body);
      this.#forget(batch);
      this.saved.value += batch.length;
      this.sequence.value = sequence;
      this.failures = 0;
      this.most = MOST;
      this.trouble.value = "";
    } catch (error) {
      this.#failed(/** @type {Refusal} */ (error), batch);
    }
    this.sending = false;
    if (this.waiting.value.length) setTimeout(() => this.flush(), this.failures ? PATIENCE[Math.min(this.failures, PATIENCE.length) - 1] : 0);
  }

  /** What is sent next: answers up to a batch that is taken back, which goes alone. */
  #next() {
    const place = this.waiting.value.findIndex((each) => each.undo_of);
    return this.waiting.value.slice(0, place < 0 ? this.most : Math.min(this.most, Math.max(1, place)));
  }

  /** What is refused for good is taken out, so that it does not hold up the others; where it is not named, they are sent one by one to find it.
   * @param {Refusal} error @param {Answer[]} batch */
  #failed(error, batch) {
    this.failures += 1;
    if (!FINAL.includes(error.status)) {
      this.trouble.value = error.message;
      return;
    }
    const named = error.faults.map((fault) => fault.document || batch[placeIn(fault.field)]?.document);
    const refused = batch.filter((answer) => named.includes(answer.document ?? "") || batch.length === 1 || error.status === 404);
    this.failures = 0;
    this.trouble.value = "";
    if (!refused.length) return void (this.most = 1);
    this.#forget(refused);
    this.refused.value = [...this.refused.value, `${refused.length} of your answers ${refused.length === 1 ? "was" : "were"} refused: ${error.message}`].slice(-MOST_TOLD);
  }

  /** @param {Answer[]} batch */
  #forget(batch) {
    const gone = new Set(batch.map((answer) => answer.id));
    this.waiting.value = this.waiting.value.filter((answer) => !gone.has(answer.id));
    for (const id of gone) remove(this.prefix + id);
  }

  #restore() {
    const found = keysFrom(this.prefix).map((key) => stored(key, /** @type {Answer | null} */ (null)));
    this.waiting.value = found.filter((each) => each !== null).sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
  }
}

/** The place of the answer that a field of a request names, as in `annotations[3].label`. @param {string} field */
const placeIn = (field) => Number(/^annotations\[(\d+)\]/.exec(field)?.[1] ?? -1);

/** @type {Map<string, Outbox>} */
const outboxes = new Map();

/** The outbox of a dataset. @param {string} dataset */
export function outboxOf(dataset) {
  let found = outboxes.get(dataset);
  if (!found) outboxes.set(dataset, (found = new Outbox(dataset)));
  return found;
}

/** Whether answers have arrived: words beyond that only when something is in the way. @param {{outbox: Outbox}} props */
export function Saved({ outbox }) {
  const waiting = outbox.waiting.value.length;
  return html`<span class="row-end quiet" id="saved" role=${outbox.trouble.value ? "status" : undefined} data-saved=${outbox.saved.value} data-waiting=${waiting}>${outbox.text}</span>`;
}
