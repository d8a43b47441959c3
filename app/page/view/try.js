/** @file Try a model: type a text, see its label, how sure it is, and why. */

import { get, part, post } from "./api.js";
import { marked, worded } from "./document.js";
import { project } from "./project.js";
import { go, to } from "./route.js";
import { Bar, Empty, Notice, Problem, html, percent, useEffect, useLoad, useState } from "./ui.js";

const PAUSE = 150;

/** @param {{parts: string[]}} props */
export function Try({ parts }) {
  const models = useLoad(async () => (await get("v1/models", { limit: 100 })).models, []);
  if (models.error) return html`<h1>Try</h1><${Problem} error=${models.error} />`;
  if (!models.value) return html`<h1>Try</h1><p class="quiet">Loading …</p>`;
  if (!models.value.length) return html`<h1>Try</h1><${Empty} title="No model was trained yet"><a class="button primary" href=${to("data")}>Go to the data</a><//>`;
  const names = models.value.map((/** @type {any} */ each) => each.name);
  const reference = [parts[0], project.value.model, names[0]].find((each) => each && names.includes(each.split("/")[0]));
  return html`<h1>Try</h1>
    <label>Model <select name="model" value=${reference} onChange=${(/** @type {any} */ event) => go("try", event.target.value)}>
      ${!names.includes(reference) && html`<option value=${reference}>${reference}</option>`}${names.map((/** @type {string} */ name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
    <${Trial} key=${reference} reference=${reference} />`;
}

/** @param {{reference: string}} props */
function Trial({ reference }) {
  const [name, number] = reference.split("/");
  const path = number ? `v1/models/${part(name)}/versions/${part(number)}` : `v1/models/${part(name)}`;
  const [text, setText] = useState("");
  const typed = usePause(text);
  const found = useLoad(async () => {
    if (!typed.trim()) return null;
    const documents = [{ text: typed }];
    const [predicted, explained] = await Promise.all([post(`${path}/predict`, { documents }), post(`${path}/explain`, { documents, n: 8 })]);
    return { predicted, explained };
  }, [path, typed]);
  return html`<label>Text <textarea name="text" rows="5" dir="auto" value=${text} placeholder="Type or paste a text" onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea></label>
    <${Problem} error=${found.error} />${found.value && typed.trim() && html`<${Answer} found=${found.value} text=${typed} />`}`;
}

/** @param {{found: any, text: string}} props */
function Answer({ found: { predicted, explained }, text }) {
  const probabilities = predicted.probabilities?.[0];
  const ranked = predicted.classes.map((/** @type {any} */ label, /** @type {number} */ k) => ({ label, probability: probabilities?.[k] })).sort((/** @type {any} */ a, /** @type {any} */ b) => b.probability - a.probability);
  const why = explained?.documents[0];
  const sign = why && why.class !== why.label ? -1 : 1;
  const spans = (why?.contributions ?? []).filter((/** @type {any} */ each) => each.spans && sign * each.contribution > 0).flatMap((/** @type {any} */ each) => each.spans);
  const reasons = why ? reasonsOf(why) : [];
  const most = Math.max(1e-12, ...reasons.map((each) => Math.abs(each.contribution)));
  return html`<div class="columns" id="answer" aria-live="polite"><section class="card"><h2 dir="auto">${worded(predicted.labels[0])}</h2>
      <div class="bars">${probabilities ? ranked.slice(0, 8).map((/** @type {any} */ each) => html`<${Bar} strong=${[predicted.labels[0]].flat().includes(each.label)} label=${each.label} share=${each.probability} text=${percent(each.probability, 1)} />`) : html`<p class="quiet">This model has no probabilities.</p>`}</div>
      ${predicted.warnings.map((/** @type {string} */ warning) => html`<${Notice}>${warning}<//>`)}</section>
    ${why && html`<section class="card"><h2 dir="auto">Why ${why.label}</h2>${spans.length > 0 && html`<p class="lines" dir="auto">${marked(text, spans)}</p>`}<div class="bars">${reasons.map((each) => html`<${Bar} strong=${sign * each.contribution > 0} label=${each.name ?? each.id ?? `feature ${each.feature ?? each.position}`} share=${Math.abs(each.contribution) / most} text=${sign * each.contribution > 0 ? "for it" : "against it"} />`)}</div>${!reasons.length && html`<p class="quiet">Nothing in it is known to the model.</p>`}</section>`}</div>`;
}

/** What a score is made of, the largest first: the terms, what an encoder reads of the text, which has no terms, and what is said of any text. Other parts are not
 * typed here. @param {any} why @returns {any[]} */
function reasonsOf(why) {
  const meaning = Object.entries(why.parts ?? {}).flatMap(([name, contribution]) => (name === "text" || !contribution ? [] : [{ name: "meaning of the text", contribution }]));
  const read = [...why.contributions, ...meaning];
  return (read.length ? [...read, { name: "before reading", contribution: why.bias ?? 0 }] : []).sort((one, other) => Math.abs(other.contribution) - Math.abs(one.contribution));
}

/** A text once it has not changed for a moment. @param {string} text */
function usePause(text) {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
