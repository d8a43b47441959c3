/** @file What was answered in this tab, so that it can be taken back, also after the tab was loaded again. */

import { store, stored } from "./stored.js";

const MOST = 500;

/** @typedef {{document: any, label?: any}} Answered */

/** The answers about one dataset, the last one at the end. The storage has no contents of documents: they may be long, and can be fetched. */
export class History {
  /** @param {string} dataset */
  constructor(dataset) {
    this.key = `halfmoon.history.${dataset}`;
    /** @type {Answered[]} */
    this.answers = stored(this.key, [], "sessionStorage");
  }

  /** @param {Answered} answered */
  push(answered) {
    this.answers.push(answered);
    this.#keep();
  }

  /** The label that a document has by the last answer about it here. @param {string} id */
  labelOf(id) {
    return this.answers.findLast(({ document }) => document.id === id)?.label;
  }

  /** The last answer, which is forgotten. */
  pop() {
    const last = this.answers.pop();
    this.#keep();
    return last;
  }

  #keep() {
    const short = this.answers.slice(-MOST).map(({ document: { id, why, drawn, guess }, label }) => ({ document: { id, why, drawn, guess, unfetched: true }, label }));
    store(this.key, short, "sessionStorage");
  }
}
