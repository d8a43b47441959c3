/** @file One version: how good it is, what it goes by, class by class. */

import { get, part, post } from "./api.js";
import { to } from "./route.js";
import { Bar, Notice, Problem, html, percent, sentence, useLoad, when } from "./ui.js";

const MOST_CLASSES = 30;

/** @param {{parts: string[]}} props */
export function Model({ parts }) {
  const [name, number] = parts;
  const path = `v1/models/${part(name)}/versions/${part(number)}`;
  const version = useLoad(() => get(path), [path]);
  const explained = useLoad(() => post(`${path}/explain`, { n: 12 }), [path]);
  if (version.error) return html`<h1>${name}</h1><${Problem} error=${version.error} />`;
  if (!version.value) return html`<p class="quiet">Loading …</p>`;
  const { held_out: held, confidence, comparison } = version.value;
  return html`<h1>${name}, version ${number}</h1>
    <p class="quiet">trained ${when(version.value.created_at)} by ${version.value.algorithm}, ${version.value.classes.length} classes · <a href=${to("try", `${name}/${number}`)}>try it</a></p>
    ${confidence === "none" && html`<${Notice} kind="error">It knows no more than chance would. More labels are needed.<//>`}
    ${held && html`<p>Of ${held.labels} labels that it was not told it is right on <b>${percent(held.right / held.labels, 1)}</b>; by chance it would be on ${percent(held.by_chance)}.</p>`}
    ${comparison && html`<p>${sentence(comparison.why)}.</p>`}
    <${Evaluation} path=${path} version=${version.value} />
    <h2>What it goes by</h2><${Problem} error=${explained.error} />
    ${explained.value && html`<${Weights} explained=${explained.value} />`}`;
}

/** @param {{path: string, version: any}} props */
function Evaluation({ path, version }) {
  const found = useLoad(async () => {
    const { datasets } = await get("v1/datasets", { limit: 500 });
    const dataset = datasets.find((/** @type {any} */ each) => each.id === version.dataset);
    return dataset?.n_labeled ? post(`${path}/evaluate`, { dataset: dataset.id }) : null;
  }, [path]);
  if (found.error) return html`<${Problem} error=${found.error} />`;
  if (!found.value) return null;
  const { classes, warnings, confusion } = found.value;
  return html`<section><h2>On the labels of the file</h2>${warnings.map((/** @type {string} */ warning) => html`<${Notice}>${warning}<//>`)}
    <p>${found.value.labeled.toLocaleString("en")} labels, ${percent(found.value.accuracy, 1)} right.</p>
    <div class="scroll"><table><thead><tr><th>Class</th><th class="number">Labels</th><th class="number">Precision</th><th class="number">Recall</th><th>Most often taken for</th></tr></thead>
      <tbody>${classes.slice(0, MOST_CLASSES).map((/** @type {any} */ each, /** @type {number} */ k) => html`<tr><td>${each.label}</td><td class="number">${each.documents}</td><td class="number">${percent(each.precision, 1)}</td><td class="number">${percent(each.recall, 1)}</td><td>${takenFor(confusion[k], k, classes)}</td></tr>`)}</tbody></table></div></section>`;
}

/** @param {number[]} row @param {number} own @param {any[]} classes */
function takenFor(row, own, classes) {
  const [count, place] = row.map((value, k) => [k === own ? -1 : value, k]).sort((a, b) => b[0] - a[0])[0] ?? [0, 0];
  return count > 0 ? `${classes[place].label} (${count})` : "–";
}

/** @param {{explained: any}} props */
function Weights({ explained }) {
  const two = explained.classes.length === 2;
  const shown = explained.weights.slice(0, MOST_CLASSES);
  return html`<div class="columns">${shown.flatMap((/** @type {any} */ each) => [html`<${Side} key=${`for ${each.class}`} label=${each.class} listed=${each.for} />`, two && html`<${Side} key="against" label=${explained.classes.find((/** @type {any} */ label) => label !== each.class)} listed=${each.against} />`])}</div>`;
}

/** @param {{label: any, listed: any[]}} props */
function Side({ label, listed }) {
  const most = Math.max(1e-12, ...listed.map((each) => Math.abs(each.weight)));
  return html`<section class="card"><h3>${label}</h3>${listed.length ? listed.map((each) => html`<${Bar} label=${each.name ?? each.id ?? `feature ${each.feature ?? each.position}`} share=${Math.abs(each.weight) / most} text=${Math.abs(each.weight).toPrecision(2)} />`) : html`<p class="quiet">nothing speaks for it by itself</p>`}</section>`;
}
