/** @file Documents that were answered together with others and come once more, one by one: whether their answers were right. */

import { store, stored } from "./stored.js";

const MOST = 50;

/** @typedef {{id: string, label: any, answered?: any}} Check */

/** Let documents come once more. @param {string} dataset @param {string[]} ids @param {string | number} label what they were confirmed as */
export function comeAgain(dataset, ids, label) {
  const others = checks(dataset).filter((each) => !ids.includes(each.id));
  keep(dataset, [...others, ...ids.map((id) => ({ id, label }))]);
}

/** Let documents not come once more: what they were confirmed as was taken back. @param {string} dataset @param {string[]} ids */
export const forgetChecks = (dataset, ids) => keep(dataset, checks(dataset).filter((each) => !ids.includes(each.id)));

/** The documents that are still to come. @param {string} dataset */
export const due = (dataset) => checks(dataset).filter((each) => each.answered === undefined);

/** Note the second answer, or that it was taken back; the check. @param {string} dataset @param {string} id @param {any} [label] */
export function answerAgain(dataset, id, label) {
  const all = checks(dataset);
  const found = all.find((each) => each.id === id);
  if (!found) return null;
  found.answered = label;
  keep(dataset, all);
  return found;
}

/** How well confirming together went, in words; empty before the first second answer. @param {string} dataset */
export function verdict(dataset) {
  const answered = checks(dataset).filter((each) => each.answered !== undefined);
  const same = answered.filter((each) => each.answered === each.label).length;
  return answered.length ? `Of ${answered.length} that came again, ${same} got the same class.` : "";
}

/** @param {string} dataset */
const keyOf = (dataset) => `halfmoon.checks.${dataset}`;

/** @param {string} dataset */
const checks = (dataset) => stored(keyOf(dataset), /** @type {Check[]} */ ([]));

/** @param {string} dataset @param {Check[]} all */
function keep(dataset, all) {
  const waiting = all.filter((each) => each.answered === undefined).slice(-MOST);
  const answered = all.filter((each) => each.answered !== undefined).slice(-MOST);
  store(keyOf(dataset), [...answered, ...waiting]);
}
