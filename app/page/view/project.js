/** @file What a person works on: a dataset and the model that learns from it; who the person is, and how they like to label. */

import { get, modelOf } from "./api.js";
import { store, stored } from "./stored.js";
import { effect, signal } from "./ui.js";

const KEY = "halfmoon.project";
const SEAT = "halfmoon.seat";
const CLAIM_SECONDS = 600;

/** @typedef {{dataset: string, name: string, model: string, by: string, mode: "blind" | "assisted", tour?: number}} Project */

/** @type {Project} */
const EMPTY = { dataset: "", name: "", model: "", by: "", mode: "blind" };

export const project = signal({ ...EMPTY, ...stored(KEY, {}) });

effect(() => store(KEY, project.value));

/** @param {Partial<Project>} changes */
export function change(changes) {
  project.value = { ...project.value, ...changes };
}

const CLAIM = { by: ownSeat(), claim: CLAIM_SECONDS };

/** Whose part of the documents is meant: shares, and what everybody answers, are by name. */
export const ownShare = () => ({ share: project.value.by || undefined });

/** What keeps others from getting the same documents. Claims are of a browser: a person may give a name later, and two may give the same. */
export const ownPart = () => ({ ...CLAIM, ...ownShare() });

/** A name for this browser, which is no name of a person. */
function ownSeat() {
  const name = stored(SEAT, `seat ${identifier()}`);
  store(SEAT, name);
  return name;
}

/** A new id. `randomUUID` is missing where a page comes over plain HTTP from another machine. */
export function identifier() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Work on a dataset. @template {{id: string, name: string | null}} T @param {T} dataset @returns {Promise<T>} the same, once it is open */
export async function open(dataset) {
  if (project.value.dataset !== dataset.id) change({ dataset: dataset.id, name: dataset.name ?? dataset.id, model: await modelName(dataset) });
  return dataset;
}

/** What is usual before anybody has labeled, or was chosen. */
const USUAL = /^no document is labeled$|one labeled document$|a training looks for it among the unlabeled documents$|^columns that are kept beside|which is left out$/;

/** Warnings about a dataset that hint at a mistake in its file. @param {{warnings: string[]}} dataset */
export const doubtful = (dataset) => dataset.warnings.filter((warning) => !USUAL.test(warning));

/** The model that learned from a dataset first; before, a name for one: that of the dataset, unless the model of that name learned from others.
 * @param {{id: string, name: string | null}} dataset */
async function modelName(dataset) {
  const { jobs } = await get("v1/jobs", { limit: 500 });
  const first = jobs.findLast((/** @type {any} */ each) => each.dataset === dataset.id && each.annotations !== null && each.algorithm !== "clusters");
  if (first) return first.model_name;
  const name = asModel(dataset.name ?? dataset.id);
  const model = await modelOf(name);
  const own = !model || model.versions.some((/** @type {any} */ each) => each.dataset === dataset.id);
  return own ? name : `${name}-${dataset.id.slice(-6)}`;
}

/** @param {string} name */
const asModel = (name) => name.normalize("NFKD").replace(/\p{M}+/gu, "").replace(/[^\w.-]+/g, "-").replace(/^[\W_]+|\W+$/g, "").slice(0, 100) || "documents";
