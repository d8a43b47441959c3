/** @file Who labels: how much each has done, how far they agree, and the way in for colleagues. */

import { call, get, part, post } from "./api.js";
import { NameField } from "./name.js";
import { Voters } from "./voters.js";
import { to } from "./route.js";
import { toast } from "./toasts.js";
import { Bar, Notice, Problem, Scroll, counted, html, percent, useLoad, useState, when } from "./ui.js";

const DAYS = 30;
/** The service does not let this person make keys. */
const FORBIDDEN = 403;

/** @param {{dataset: any}} props */
export function People({ dataset }) {
  const summary = useLoad(() => get(`v1/datasets/${part(dataset.id)}/annotations/summary`), [dataset.id]);
  const { people = {}, compared = 0, agreed = 0, disputed = 0, krippendorff = null, pairs = [], overlap = 0, overlap_answered: done = {} } = summary.value ?? {};
  const most = Object.entries(people).sort((one, other) => other[1] - one[1]);
  return html`<h1>People</h1><${NameField} onDone=${() => toast("Your name is saved")} /><${Problem} error=${summary.error} />
    ${most.length > 0 && html`<section><h2>Answers</h2><${Scroll} label="Answers by person"><table class="narrow"><thead><tr><th>Person</th><th class="number">Answers</th></tr></thead><tbody>${most.map(([person, count]) => html`<tr key=${person}><td>${person || "without a name"}</td><td class="number">${count.toLocaleString("en")}</td></tr>`)}</tbody></table><//></section>`}
    <section><h2>Agreement</h2>${compared ? html`<p>Several people labeled ${counted(compared, "document")}, and agree on ${agreed} (${percent(agreed / compared)}).${krippendorff !== null && ` Krippendorff's alpha is ${krippendorff.toFixed(2)}: 1 is agreement, 0 is chance.`}</p>
      ${disputed > 0 && html`<p>Until somebody settles them, a training weighs the answers to ${counted(disputed, "document")} by how right each person is.</p><p><a class="button primary" href=${`${to("documents", dataset.id)}?disagreement=true`}>Settle ${counted(disputed, "document")}</a></p>`}
      <${Scroll} label="Agreement of each two"><table class="stacked"><thead><tr><th>People</th><th class="number">Documents</th><th class="number">Agreed</th><th class="number">Cohen's kappa</th></tr></thead><tbody>${pairs.map((/** @type {any} */ each) => html`<tr key=${each.people.join()}><td data-head="People">${each.people.map((/** @type {string} */ person) => person || "without a name").join(" and ")}</td><td class="number" data-head="Documents">${each.compared}</td><td class="number" data-head="Agreed">${percent(each.agreed / each.compared)}</td><td class="number" data-head="Cohen's kappa">${each.cohen === null ? "–" : each.cohen.toFixed(2)}</td></tr>`)}</tbody></table><//>` : html`<p class="quiet">Nobody has labeled a document that another person labeled, too. Let everybody answer some of them, below.</p>`}
      ${overlap > 0 && html`<h3>Answered by everybody</h3>${most.map(([person]) => person).filter(Boolean).map((person) => html`<${Bar} key=${person} strong label=${person} share=${(done[person] ?? 0) / overlap} text=${`${done[person] ?? 0} of ${overlap}`} />`)}`}</section>
    <${Shares} dataset=${dataset} people=${most.map(([person]) => person).filter(Boolean)} /><${Voters} dataset=${dataset} /><${Invite} dataset=${dataset} />`;
}

/** Who labels which share of the documents. @param {{dataset: any, people: string[]}} props */
function Shares({ dataset, people }) {
  const [shares, setShares] = useState(/** @type {Record<string, number>} */ (dataset.shares));
  const [shared, setShared] = useState(Math.round(dataset.overlap * dataset.n_documents));
  const [error, setError] = useState(/** @type {any} */ (null));
  const total = Object.values(shares).reduce((sum, share) => sum + share, 0);
  const free = people.filter((person) => !(person in shares));
  const without = (/** @type {string} */ person) => Object.fromEntries(Object.entries(shares).filter(([other]) => other !== person));
  const put = (/** @type {Record<string, number>} */ changed) => call("PATCH", `v1/datasets/${part(dataset.id)}`, { shares: changed }).then(() => (setShares(changed), setError(null), toast("The shares are saved")), setError);
  const keep = (/** @type {any} */ event) => {
    event.preventDefault();
    call("PATCH", `v1/datasets/${part(dataset.id)}`, { overlap: shared / dataset.n_documents }).then(() => (setError(null), toast(shared ? `Everybody answers ${counted(shared, "document")}` : "Each document is answered once")), setError);
  };
  const add = (/** @type {any} */ event) => {
    event.preventDefault();
    const person = event.target.elements.person.value.trim();
    if (person) put({ ...shares, [person]: shares[person] ?? 1 });
    event.target.reset();
  };
  return html`<section><h2>Shares</h2>
    <form class="row" onSubmit=${keep}><label class="row">Everybody answers <input name="overlap" class="short" type="number" min="0" max=${dataset.n_documents} required value=${shared} onInput=${(/** @type {any} */ event) => setShared(Number(event.target.value))} /></label><span>of ${counted(dataset.n_documents, "document")}</span><button>Save</button></form>
    <p class="quiet">All get these first, without seeing what others said. So it is known how far people agree: 50 are enough to begin with.</p>
    <p>${total ? "Of the others each gets those of the own share, and who is not listed gets all." : "The others go to whoever comes. With shares, each person gets a part of them."}</p><${Problem} error=${error} />
    ${total > 0 && html`<${Scroll} label="Shares"><table class="narrow"><thead><tr><th>Person</th><th class="number">Parts</th><th class="number">Share</th><th></th></tr></thead><tbody>${Object.entries(shares).map(([person, share]) => html`<tr key=${person}><td>${person}</td><td class="number"><input type="number" min="0.001" max="1000" step="any" aria-label=${`Parts of ${person}`} value=${share} onChange=${(/** @type {any} */ event) => event.target.reportValidity() && put({ ...shares, [person]: Number(event.target.value) })} /></td><td class="number">${percent(share / total)}</td><td><button class="small" aria-label=${`No share for ${person}`} onClick=${() => put(without(person))}>Remove</button></td></tr>`)}</tbody></table><//>`}
    <form class="row" onSubmit=${add}><label class="row">Person <input name="person" required maxlength="100" list="people" /></label><datalist id="people">${free.map((person) => html`<option key=${person} value=${person} />`)}</datalist><button>Give a share</button></form></section>`;
}

/** A link for a colleague, with a key where one is required. @param {{dataset: any}} props */
function Invite({ dataset }) {
  const [name, setName] = useState("");
  const [link, setLink] = useState("");
  const [error, setError] = useState(/** @type {any} */ (null));
  const keys = useLoad(() => get("v1/keys").catch((failure) => (failure.status === FORBIDDEN ? { keys: [], required: true } : Promise.reject(failure))), []);
  const invite = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const page = `${location.origin}${location.pathname}`;
    setError(null);
    if (!keys.value.required) return setLink(`${page}${to("label", dataset.id)}`);
    try {
      const { key } = await post("v1/keys", { name: name.trim().replace(/[^A-Za-z0-9._-]+/g, "-"), days: DAYS });
      setLink(`${page}${to("keys", key)}?${new URLSearchParams({ by: name.trim(), dataset: dataset.id })}`);
      keys.again();
    } catch (/** @type {any} */ failure) {
      setError(failure.status === FORBIDDEN ? { message: "Your key may not invite. Ask who runs the service" } : failure);
    }
  };
  const revoke = (/** @type {any} */ key) => call("DELETE", `v1/keys/${part(key.id)}`).then(() => (toast(`${key.name} is out`), keys.again()), setError);
  return html`<section><h2>Invite a colleague</h2><form class="row" onSubmit=${invite}><label class="row">Name <input name="colleague" required maxlength="100" pattern=".*[A-Za-z0-9].*" value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} /></label><button disabled=${!keys.value}>Make a link</button></form><${Problem} error=${error ?? keys.error} />
    ${link && html`<${Notice}><p>Send this link to ${name}. Who has it may label, and remove nothing.</p><p><label>Link <input class="wide" readonly value=${link} onFocus=${(/** @type {any} */ event) => event.target.select()} /></label></p><//>`}
    ${keys.value?.keys.length > 0 && html`<ul class="list beneath">${keys.value.keys.map((/** @type {any} */ key) => html`<li key=${key.id}><span><b>${key.name}</b> <span class="quiet">until ${when(key.expires_at)}</span></span><button class="danger" onClick=${() => revoke(key)}>Revoke</button></li>`)}</ul>`}</section>`;
}
