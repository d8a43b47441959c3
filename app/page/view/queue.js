/** @file Which document comes next, fetched before it is needed. */

import { get, part, post } from "./api.js";
import { isSeveral } from "./document.js";
import { ownPart, ownShare } from "./project.js";
import { signal } from "./ui.js";

const LEAST = 10;
const MORE = 20;
/** Documents before those that come once more, and before the first suggestions. */
const SOON = 5;
/** Share of random documents among suggestions: with fewer, models of some 80 labels misjudge how common the classes are. */
const RANDOM = 0.5;
/** Absent, no key, busy: suggestions come later. */
const PASSING = [0, 401, 403, 429];

/** @typedef {{id: string, text?: string, features?: Record<string, number>, indices?: number[], values?: number[], fields?: Record<string, any>, drawn: string | null,
 *   flagged?: boolean, notes?: Record<string, string>, why: "random" | "chosen" | "found" | "audit" | "again", guess: {label: any, probability: number | null, rival?: any} | null}} Next */

/** The documents that a person is about to see. */
export class Queue {
  /** @param {string} dataset @param {string} model @param {string} order where documents come from: "mixed" or `find:` and a text
   * @param {string} by the person whose documents they are @param {() => boolean} trained whether the model exists */
  constructor(dataset, model, order, by, trained) {
    this.by = by;
    this.trained = trained;
    this.dataset = dataset;
    this.model = model;
    this.order = order;
    this.find = order.startsWith("find:") ? order.slice(5) : "";
    this.documents = signal(/** @type {Next[]} */ ([]));
    this.done = signal(false);
    this.error = signal(/** @type {any} */ (null));
    /** why no suggestions come */
    this.trouble = signal(/** @type {any} */ (null));
    this.seen = new Set();
    this.cursor = "";
    this.seed = Math.floor(Math.random() * 2 ** 31);
    this.turn = 0;
    this.filling = false;
    this.bridging = false;
    this.stale = false;
    this.closed = false;
  }

  /** Go on to the next document. */
  advance() {
    this.documents.value = this.documents.value.slice(1);
    this.fill();
  }

  /** Show the document in front as it is now. @param {Next} document */
  change(document) {
    this.documents.value = [document, ...this.documents.value.slice(1)];
  }

  /** Put a document in front. @param {Next} document */
  putBack(document) {
    this.documents.value = [document, ...this.documents.value.filter((each) => each.id !== document.id)];
    this.done.value = false;
  }

  /** Put a document in front that was answered before; it is fetched again if the tab was loaded since. @param {any} document */
  async bringBack(document) {
    if (!document.unfetched) return this.putBack(document);
    const { unfetched, ...kept } = document;
    try {
      const [found] = await this.#named([document.id]);
      if (found) this.putBack({ ...found, ...kept });
    } catch (error) {
      this.error.value = error;
    }
  }

  /** Leave out a document that was answered in another tab, unless it is being read here. @param {string} id */
  leaveOut(id) {
    this.documents.value = this.documents.value.filter((each, place) => place === 0 || each.id !== id);
    this.fill();
  }

  /** Let documents come between the others that were answered together with others before. @param {string[]} ids */
  async mixIn(ids) {
    const found = await this.#named(ids.slice(0, MORE)).catch(() => []); // they come another time
    const again = found.map((/** @type {any} */ each) => ({ ...each, why: "again", drawn: null, guess: null }));
    this.documents.value = [...this.documents.value.slice(0, SOON), ...again, ...this.documents.value.slice(SOON)];
  }

  /** Look for documents that became free. */
  lookAgain() {
    this.done.value = false;
    this.seen.clear();
    this.cursor = "";
    this.fill();
  }

  /** Let the suggestions of a new version take the place of older ones, when they are there. */
  renew() {
    this.stale = true;
    this.cursor = "";
    this.fill();
  }

  async fill() {
    const stale = this.stale;
    if (this.filling) this.#bridge();
    if (this.filling || this.closed || (!stale && (this.done.value || this.documents.value.length >= LEAST))) return;
    this.filling = true;
    this.stale = false;
    try {
      const { fresh, last } = this.find ? await this.#found() : await this.#mixed();
      if (stale) this.#forgetOthers();
      this.#add(fresh);
      this.done.value = last;
      this.error.value = null;
    } catch (error) {
      this.stale ||= stale;
      this.error.value = error;
      setTimeout(() => this.fill(), 2000);
    }
    this.filling = false;
    if (!this.error.value) this.fill();
  }

  /** @param {Next[]} fresh */
  #add(fresh) {
    const unseen = fresh.filter(({ id }) => !this.seen.has(id));
    for (const { id } of unseen) this.seen.add(id);
    this.documents.value = [...this.documents.value, ...unseen];
  }

  /** Random documents for who has answered all others before suggestions come: a new version reads 100,000 documents for seconds. */
  async #bridge() {
    if (this.find || this.bridging || this.closed || this.documents.value.length > 1) return;
    this.bridging = true;
    await this.#random().then(({ fresh }) => this.#add(fresh), () => {}); // the suggestions are on their way
    this.bridging = false;
  }

  /** Forget the documents of an older version but the one that is shown. */
  #forgetOthers() {
    const kept = this.documents.value.filter((each, place) => place === 0 || each.why === "again");
    for (const { id } of this.documents.value) if (!kept.some((each) => each.id === id)) this.seen.delete(id);
    this.documents.value = kept;
  }

  /** Suggestions of the model mixed with random documents; without a model random ones. */
  async #mixed() {
    if (!this.trained()) return this.#page({ order: "random", seed: this.seed }, "random");
    // suggestions take their time: who waits begins with random documents
    if (!this.documents.value.length && !this.turn) return this.#random();
    try {
      const found = await this.#suggested();
      this.trouble.value = null;
      return found;
    } catch (error) {
      if (PASSING.includes(/** @type {any} */ (error).status)) throw error;
      this.trouble.value = error;
      return this.#random();
    }
  }

  async #suggested() {
    this.turn += 1;
    const body = { dataset: this.dataset, n: MORE + this.documents.value.length, seed: (this.seed + this.turn) % 2 ** 31, random: RANDOM, include: ["document"], ...ownPart() };
    const { suggestions } = await post(`v1/models/${part(this.model)}/suggest`, body);
    const fresh = suggestions.map((/** @type {any} */ each) => ({
      ...each.document,
      drawn: each.drawn,
      why: each.drawn,
      differ: each.voters_differ,
      // of several labels the model's are asked for when they are shown
      guess: !isSeveral(each.document) ? { label: each.label, probability: each.probability, rival: each.rival } : null,
    }));
    return { fresh, last: suggestions.length < MORE };
  }

  /** A few random documents, while there is no model. */
  async #random() {
    this.turn += 1;
    const { fresh, last } = await this.#page({ order: "random", seed: this.seed }, "random", SOON);
    return { fresh, last: last && this.trouble.value !== null };
  }

  async #found() {
    return this.#page({ contains: this.find }, "found");
  }

  /** @param {Record<string, any>} query @param {"random" | "found"} why @param {number} [limit] */
  async #page(query, why, limit = MORE) {
    const path = `v1/datasets/${part(this.dataset)}/documents`;
    const { documents, next } = await get(path, { ...query, state: "open", limit, cursor: this.cursor, ...ownPart() });
    this.cursor = next ?? this.cursor;
    const fresh = documents.map((/** @type {any} */ each) => ({ ...each, drawn: why, why, guess: null }));
    return { fresh, last: next === null };
  }

  /** @param {string[]} ids */
  async #named(ids) {
    const { documents } = await get(`v1/datasets/${part(this.dataset)}/documents`, { ids: JSON.stringify(ids), limit: ids.length, ...ownShare() });
    return documents;
  }
}
