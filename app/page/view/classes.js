/** @file The order of classes: a button that moved would be pressed by mistake, so a class keeps its place once it has one. */

import { store, stored } from "./stored.js";

/** @type {Map<string, string[]>} */
const orders = new Map();

/** @param {string} dataset */
const keyOf = (dataset) => `halfmoon.classes.${dataset}`;

/** The classes of a dataset as annotations give them, whole numbers where labels are such: those of the file, of people, and those that were added.
 * @param {any} dataset @param {any} summary of the annotations, which has the type of the labels @param {string[]} [added] @returns {(string | number)[]} */
export function classesOf(dataset, summary, added = []) {
  const names = inOrder(dataset.id, [...Object.keys(dataset.classes).sort(), ...Object.keys(summary.classes).sort(), ...added]);
  return areIntegers(summary) ? names.map(Number) : names;
}

/** Whether labels are whole numbers; texts are refused then. @param {any} summary */
export const areIntegers = (summary) => typeof summary?.labels[0] === "number";

/** Names of classes, those that are known first and in their old order, each once. @param {string} dataset @param {string[]} names */
function inOrder(dataset, names) {
  const before = orderOf(dataset);
  const now = [...new Set([...before, ...names])];
  if (now.length > before.length || !orders.has(dataset)) keep(dataset, now);
  return now;
}

/** Forget a class that no document has. @param {string} dataset @param {string} name */
export function forget(dataset, name) {
  keep(dataset, orderOf(dataset).filter((each) => each !== name));
}

/** @param {string} dataset */
const orderOf = (dataset) => orders.get(dataset) ?? stored(keyOf(dataset), /** @type {string[]} */ ([]));

/** @param {string} dataset @param {string[]} names */
function keep(dataset, names) {
  orders.set(dataset, names);
  store(keyOf(dataset), names);
}
