/** @file The classes and the guidelines of a dataset, changed for all people: order, keys, descriptions, colours; one class made another. */

import { KEYED, RESERVED } from "./answers.js";
import { call, get, part } from "./api.js";
import { plainly, useClasses } from "./classes.js";
import { outboxOf } from "./outbox.js";
import { identifier, project } from "./project.js";
import { to } from "./route.js";
import { toast } from "./toasts.js";
import { Problem, counted, html, useEffect, useLoad, useState } from "./ui.js";

const PAGE = 500;
const LONGEST = 200;

/** @typedef {import("./classes.js").Class} Class */

/** @param {{dataset: any}} props */
export function Editor({ dataset }) {
  const classes = useClasses(dataset.id);
  const [error, setError] = useState(/** @type {any} */ (null));
  const listed = classes.listed.value;
  const put = (/** @type {Class[]} */ wanted, /** @type {string} */ done) => {
    const before = listed;
    const undo = () => put(before, "Taken back");
    classes.put(wanted).then(() => (setError(null), toast(done, undo)), setError);
  };
  const set = (/** @type {number} */ place, /** @type {Partial<Class>} */ changes) => put(listed.map((each, k) => (k === place ? { ...each, ...changes } : each)), `${listed[place].name} is changed`);
  const move = (/** @type {number} */ place, /** @type {number} */ by) => {
    const wanted = [...listed];
    wanted.splice(place + by, 0, ...wanted.splice(place, 1));
    put(wanted, `${listed[place].name} is moved`);
  };
  return html`<h1>Classes</h1><p>They are the same for everybody who labels ${dataset.name ?? "these documents"}. <a href=${to("label", dataset.id)}>Back to labeling</a></p>
    <${Problem} error=${error ?? classes.error.value} />
    <ul class="list">${listed.map((each, place) => html`<${One} key=${each.name} of=${each} taken=${listed} onChange=${(/** @type {Partial<Class>} */ changes) => set(place, changes)} onUp=${place ? () => move(place, -1) : null} onDown=${place < listed.length - 1 ? () => move(place, 1) : null} />`)}</ul>
    ${listed.length > 0 && html`<${Become} dataset=${dataset} classes=${classes} />`}
    <${Guidelines} dataset=${dataset} />`;
}

/** @param {{of: Class, taken: Class[], onChange: (changes: Partial<Class>) => void, onUp: (() => void) | null, onDown: (() => void) | null}} props */
function One({ of: { name, key, description, color }, taken, onChange, onUp, onDown }) {
  const free = [..."123456789abcdefghijklmnopqrstuvwxyz"].filter((each) => each === key || (!RESERVED.includes(each) && !taken.some((other) => other.key === each)));
  return html`<li><b dir="auto">${name}</b><div class="row wide">
      <label class="row">Key <select value=${key ?? ""} onChange=${(/** @type {any} */ event) => onChange({ key: event.target.value || null })}>${(!key || taken.length > KEYED) && html`<option value="">none</option>`}${free.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></label>
      <label class="row">Colour <input type="color" value=${color ?? "#808080"} onChange=${(/** @type {any} */ event) => onChange({ color: event.target.value })} /></label>
      <label class="row described">Which documents? <input maxlength=${LONGEST} value=${description ?? ""} onChange=${(/** @type {any} */ event) => onChange({ description: event.target.value })} /></label></div>
    <div class="row"><button class="small" disabled=${!onUp} aria-label=${`Move ${name} up`} onClick=${onUp}>↑</button><button class="small" disabled=${!onDown} aria-label=${`Move ${name} down`} onClick=${onDown}>↓</button></div></li>`;
}

/** Give all documents of one class another one: that renames it, or joins the two. Two whose names are hardly meant to differ stand there first. @param {{dataset: any, classes: import("./classes.js").Classes}} props */
function Become({ dataset, classes }) {
  const listed = classes.listed.value;
  const [given, setGiven] = useState(/** @type {number | null} */ (null));
  const [typed, setTyped] = useState(/** @type {string | null} */ (null));
  const summary = useLoad(() => get(`v1/datasets/${part(dataset.id)}/annotations/summary`), [dataset.id]);
  const like = (/** @type {Class} */ one) => listed.find((each) => each !== one && plainly(each.name) === plainly(one.name) && [one, each].every(({ name }) => summary.value?.classes[name]));
  const from = given ?? Math.max(0, listed.findIndex(like));
  const name = typed ?? String((given === null && like(listed[from])?.name) || "");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {any} */ (null));
  const become = async (/** @type {Event} */ event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      const old = listed[from], label = classes.integers ? Number(name.trim()) : name.trim();
      const found = await documentsOf(dataset.id, old.name);
      const outbox = outboxOf(dataset.id), batch = identifier(), by = project.value.by || undefined;
      for (const { id, labels } of found) outbox.add({ document: id, ...(labels ? { labels: [...new Set(labels.map((/** @type {any} */ each) => (each === old.name ? label : each)))] } : { label }), batch, by });
      const known = listed.some((each) => each.name === label);
      await outbox.settled();
      await classes.put(listed.flatMap((each) => (each !== old ? [each] : known ? [] : [{ ...old, name: label }])));
      toast(`${counted(found.length, "document")} of ${old.name} ${found.length === 1 ? "is" : "are"} ${label} now`, async () => {
        if (found.length) outbox.takeBack(batch);
        await outbox.settled();
        await classes.put(listed);
      });
      setGiven(null);
      setTyped(null);
      summary.again();
    } catch (failure) {
      setError(failure);
    }
    setBusy(false);
  };
  return html`<section><h2>Rename or join</h2><form class="row" onSubmit=${become}><label class="row">All documents of <select value=${from} onChange=${(/** @type {any} */ event) => setGiven(Number(event.target.value))}>${listed.map((each, k) => html`<option key=${each.name} value=${k}>${each.name}</option>`)}</select></label>
    <label class="row">become <input list="classes" required maxlength="256" value=${name} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /></label><datalist id="classes">${listed.map((each) => html`<option key=${each.name} value=${each.name} />`)}</datalist>
    <button disabled=${busy || !name.trim()}>${busy ? "Changing …" : "Change"}</button></form><${Problem} error=${error} />
    <p class="quiet">A new name renames the class, that of another class joins the two. Models learn it with the next version.</p></section>`;
}

/** All documents of a class. @param {string} dataset @param {string | number} label @returns {Promise<any[]>} */
async function documentsOf(dataset, label) {
  const found = [];
  let cursor = null;
  do {
    const { documents, next } = await get(`v1/datasets/${part(dataset)}/documents`, { label, limit: PAGE, cursor });
    found.push(...documents);
    cursor = next;
  } while (cursor);
  return found;
}

/** @param {{dataset: any}} props */
function Guidelines({ dataset }) {
  const [text, setText] = useState(dataset.guidelines);
  const [error, setError] = useState(/** @type {any} */ (null));
  useEffect(() => setText(dataset.guidelines), [dataset.guidelines]);
  const keep = (/** @type {Event} */ event) => {
    event.preventDefault();
    call("PATCH", `v1/datasets/${part(dataset.id)}`, { guidelines: text }).then(() => (setError(null), toast("The guidelines are saved")), setError);
  };
  return html`<section><h2>Guidelines</h2><form onSubmit=${keep}><label>How to label, in your words: <code>h</code> shows them beside each document <textarea name="guidelines" rows="6" maxlength="20000" value=${text} onInput=${(/** @type {any} */ event) => setText(event.target.value)}></textarea></label><${Problem} error=${error} /><button>Save</button></form></section>`;
}
