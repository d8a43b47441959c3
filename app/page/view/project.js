/** @file What a person works on: a dataset and the model that learns from it; who the person is, and how they like to label. */

import { effect, signal } from "./ui.js";

const KEY = "halfmoon.project";

/** @typedef {{dataset: string, name: string, model: string, by: string, mode: "blind" | "assisted"}} Project */

/** @returns {Project} */
function stored() {
  const empty = { dataset: "", name: "", model: "", by: "", mode: /** @type {const} */ ("blind") };
  try {
    return { ...empty, ...JSON.parse(localStorage.getItem(KEY) ?? "{}") };
  } catch {
    return empty;
  }
}

export const project = signal(stored());

effect(() => {
  const text = JSON.stringify(project.value);
  try {
    localStorage.setItem(KEY, text);
  } catch {
    // a browser that keeps nothing forgets the project with the tab, and nothing else
  }
});

/** @param {Partial<Project>} changes */
export function change(changes) {
  project.value = { ...project.value, ...changes };
}

/** Work on a dataset; its model is called as the dataset is. @param {{id: string, name: string | null}} dataset */
export function open(dataset) {
  if (project.value.dataset === dataset.id) return;
  change({ dataset: dataset.id, name: dataset.name ?? dataset.id, model: modelName(dataset) });
}

/** A name for the model of a dataset: a model's name begins with a letter or a digit. @param {{id: string, name: string | null}} dataset */
export function modelName(dataset) {
  return dataset.name ?? dataset.id;
}
