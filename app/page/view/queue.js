/** @file Which document comes next: the next ones are fetched before they are needed. */

import { get, part, post } from "./api.js";
import { project } from "./project.js";
import { signal } from "./ui.js";

const LEAST = 10;
const MORE = 20;
const CLAIM_SECONDS = 600;
/** Share of random documents among suggestions: with fewer, models of some 80 labels misjudge how common the classes are. */
const RANDOM = 0.5;

/** @typedef {{id: string, text?: string, features?: Record<string, number>, indices?: number[], values?: number[], fields?: Record<string, any>, drawn: string | null,
 *   why: "random" | "chosen" | "found" | "audit" | "again", guess: {label: any, probability: number | null} | null}} Next */

/** What keeps others from getting the same documents; those without a name share theirs. */
const claim = () => (project.value.by ? { by: project.value.by, claim: CLAIM_SECONDS } : {});

/** The documents that a person is about to see. */
export class Queue {
  /** @param {string} dataset @param {string} model @param {string} order where documents come from: "mixed" or `find:` and a text
   * @param {() => boolean} trained whether the model exists */
  constructor(dataset, model, order, trained) {
    this.trained = trained;
    this.dataset = dataset;
    this.model = model;
    this.order = order;
    this.find = order.startsWith("find:") ? order.slice(5) : "";
    this.documents = signal(/** @type {Next[]} */ ([]));
    this.done = signal(false);
    this.error = signal(/** @type {any} */ (null));
    this.seen = new Set();
    this.cursor = "";
    this.seed = Math.floor(Math.random() * 2 ** 31);
    this.turn = 0;
    this.filling = false;
    this.closed = false;
  }

  get current() {
    return this.documents.value[0] ?? null;
  }

  /** Go on to the next document. */
  advance() {
    this.documents.value = this.documents.value.slice(1);
    this.fill();
  }

  /** Put a document in front. @param {Next} document */
  putBack(document) {
    this.documents.value = [document, ...this.documents.value.filter((each) => each.id !== document.id)];
    this.done.value = false;
  }

  /** Forget the documents that were chosen by an older version, but the one that is shown. */
  renew() {
    const kept = this.documents.value.slice(0, 1);
    for (const { id } of this.documents.value.slice(1)) this.seen.delete(id);
    this.documents.value = kept;
    this.cursor = "";
    this.fill();
  }

  async fill() {
    if (this.filling || this.closed || this.done.value || this.documents.value.length >= LEAST) return;
    this.filling = true;
    try {
      const { fresh, last } = this.find ? await this.#found() : await this.#mixed();
      const unseen = fresh.filter((/** @type {Next} */ each) => !this.seen.has(each.id));
      for (const { id } of unseen) this.seen.add(id);
      this.documents.value = [...this.documents.value, ...unseen];
      this.done.value = last;
      this.error.value = null;
    } catch (error) {
      this.error.value = error;
      setTimeout(() => this.fill(), 2000);
    }
    this.filling = false;
    if (!this.error.value) this.fill();
  }

  /** Suggestions of the model mixed with random documents; without a model random ones. */
  async #mixed() {
    this.turn += 1;
    const body = { dataset: this.dataset, n: MORE + this.documents.value.length, seed: (this.seed + this.turn) % 2 ** 31, random: RANDOM, include: ["document"], ...claim() };
    if (this.trained()) {
      const { suggestions } = await post(`v1/models/${part(this.model)}/suggest`, body);
      const fresh = suggestions.map((/** @type {any} */ each) => ({
        ...each.document,
        drawn: each.drawn,
        why: each.drawn,
        guess: { label: each.label, probability: each.probability },
      }));
      return { fresh, last: suggestions.length < MORE };
    }
    return this.#page({ order: "random", seed: this.seed }, "random");
  }

  async #found() {
    return this.#page({ contains: this.find }, "found");
  }

  /** @param {Record<string, any>} query @param {"random" | "found"} why */
  async #page(query, why) {
    const path = `v1/datasets/${part(this.dataset)}/documents`;
    const { documents, next } = await get(path, { ...query, state: "open", limit: MORE, cursor: this.cursor });
    this.cursor = next ?? this.cursor;
    const fresh = documents.map((/** @type {any} */ each) => ({ ...each, drawn: why, why, guess: null }));
    return { fresh, last: next === null };
  }
}
