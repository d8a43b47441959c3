/** @file The classes of a dataset: they belong to it, so their order, keys and descriptions are the same for all people and in all views. */

import { call, get, part } from "./api.js";
import { AGAIN, PASSING, signal, useEffect } from "./ui.js";

/** @typedef {string | number} Name */
/** @typedef {{name: Name, key?: string | null, description?: string, color?: string | null}} Class */

/** The class of all documents that are not of the only class that is labeled. */
export const REST = "other";
const KEYS = [..."123456789"];

/** A name without case and spaces. @param {Name} name */
export const plainly = (name) => String(name).trim().replace(/\s+/g, " ").toLowerCase();

/** The classes of one dataset. */
export class Classes {
  /** @param {string} dataset */
  constructor(dataset) {
    this.path = `v1/datasets/${part(dataset)}/classes`;
    this.listed = signal(/** @type {Class[]} */ ([]));
    this.loaded = signal(false);
    this.error = signal(/** @type {any} */ (null));
    this.last = Promise.resolve();
    this.pending = 0;
  }

  async load() {
    try {
      this.#take(await get(this.path));
    } catch (/** @type {any} */ error) {
      this.error.value = error;
      if (PASSING.includes(error.status)) setTimeout(() => this.load(), AGAIN);
    }
  }

  /** Look for changes that others made; whether there are any. */
  async look() {
    if (!this.loaded.value || this.pending) return false;
    const before = JSON.stringify(this.listed.value);
    const answer = await get(this.path).catch(() => null); // another time
    if (!answer || this.pending) return false;
    this.#take(answer);
    return JSON.stringify(answer.classes) !== before;
  }

  /** Set the classes; throws Refusal. @param {Class[]} classes */
  put(classes) {
    return this.#change(() => classes);
  }

  /** Add classes behind those that there are then, also by others; throws Refusal. @param {string[]} names */
  add(names) {
    const fresh = (/** @type {Class[]} */ listed) => names.filter((name) => !listed.some((each) => String(each.name) === name)).map((name) => ({ name: this.integers ? Number(name) : name }));
    const free = KEYS.filter((key) => !this.listed.value.some((each) => each.key === key));
    // they are there at once, and answer to their keys; what the service says comes after it
    this.listed.value = [...this.listed.value, ...fresh(this.listed.value).map((each, k) => ({ ...each, key: free[k] }))];
    return this.#change(async () => {
      const { classes } = await get(this.path);
      return [...classes, ...fresh(classes)];
    });
  }

  /** Change the classes when earlier changes have arrived, so that none is lost. @param {() => Class[] | Promise<Class[]>} wanted */
  #change(wanted) {
    this.pending += 1;
    const change = async () => {
      try {
        const answer = await call("PUT", this.path, { classes: await wanted() });
        // what is shown already has the changes that are still to come
        if (this.pending === 1) this.#take(answer);
      } catch (error) {
        await this.load();
        throw error;
      } finally {
        this.pending -= 1;
      }
    };
    this.last = this.last.then(change, change);
    return this.last;
  }

  /** Forget a class that no document has; throws Refusal. @param {Name} name */
  remove(name) {
    return this.put(this.listed.value.filter((each) => each.name !== name));
  }

  /** Whether labels are whole numbers; texts are refused then. */
  get integers() {
    return typeof this.listed.value[0]?.name === "number";
  }

  /** @param {{classes: Class[]}} answer */
  #take({ classes }) {
    this.listed.value = classes;
    this.loaded.value = true;
    this.error.value = null;
  }
}

/** @type {Map<string, Classes>} */
const known = new Map();

/** The classes of a dataset, read again by each view that shows them. @param {string} dataset */
export function useClasses(dataset) {
  let found = known.get(dataset);
  if (!found) known.set(dataset, (found = new Classes(dataset)));
  useEffect(() => void found.load(), [dataset]);
  return found;
}
