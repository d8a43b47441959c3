/** @file Jobs: what runs, how far it is, what went wrong, and cancelling. */

import { get, isOver, part, post } from "./api.js";
import { to } from "./route.js";
import { Bar, Empty, Problem, Remedy, counted, html, percent, say, sentence, stopped, useInterval, useLoad, useState, when } from "./ui.js";

const MOST_SAID = 4;

export function Jobs() {
  const jobs = useLoad(() => get("v1/jobs", { limit: 50 }), []);
  const [error, setError] = useState(/** @type {any} */ (null));
  useInterval(() => jobs.again(), 1000);
  const cancel = (/** @type {any} */ job) => post(`v1/jobs/${part(job.id)}/cancel`, {}).then(() => (say("Cancelling"), setError(null), jobs.again()), setError);
  if (!jobs.value) return html`<h1>Jobs</h1><${Problem} error=${jobs.error} />`;
  return html`<h1>Jobs</h1><${Problem} error=${error ?? jobs.error} />
    ${jobs.value.jobs.length ? html`<ul class="list">${jobs.value.jobs.map((/** @type {any} */ job) => html`<${Job} key=${job.id} job=${job} onCancel=${() => cancel(job)} />`)}</ul>` : html`<${Empty} title="No job has run yet"><p>Training begins by itself while you label.</p><//>`}`;
}

/** @param {{job: any, onCancel: () => void}} props */
function Job({ job, onCancel }) {
  const over = isOver(job);
  const said = new Set([...(job.report?.summary ?? []), ...job.warnings].map((text) => stopped(sentence(text))));
  return html`<li><div class="wide"><b>${job.model_name}</b> <span class=${job.state === "failed" ? "tag bad" : "tag"}>${job.state}</span> <span class="quiet"><span class="date">${when(job.created_at)}</span>${job.annotations ? `, ${counted(job.annotations, "answer")}` : ""}</span>
      ${!over && html`<${Bar} strong label=${job.state} share=${job.progress.fraction} text=${`${percent(job.progress.fraction)}${timeLeft(job)}`} /><p class="quiet">${sentence(job.progress.phase || "waiting")}</p>`}
      ${job.error && html`<p>${stopped(sentence(job.error.detail))}<${Remedy} type=${job.error.type} status=${job.error.status} /></p>`}
      ${[...said].slice(0, MOST_SAID).map((text) => html`<p class="quiet">${text}</p>`)}</div>
    ${job.model ? html`<a class="button" href=${to("model", job.model.name, job.model.version)}>Version ${job.model.version}</a>` : !over && html`<button onClick=${onCancel} disabled=${job.state === "cancelling"}>Cancel</button>`}</li>`;
}

/** How long a job still takes, by what it took so far. @param {any} job */
function timeLeft(job) {
  const done = job.progress.fraction;
  if (!job.started_at || done < 0.05) return "";
  const seconds = ((Date.now() - new Date(job.started_at).getTime()) / 1000) * ((1 - done) / done);
  if (seconds < 0) return "";
  return seconds < 90 ? `, some ${Math.max(1, Math.round(seconds))} s left` : `, some ${Math.round(seconds / 60)} min left`;
}
