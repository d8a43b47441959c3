/** @file The page: its frame, and the view that the address names. */

import { get, keyNeeded, part } from "./api.js";
import { open, project } from "./project.js";
import { route, to } from "./route.js";
import { Toasts } from "./toasts.js";
import { trainerOf } from "./training.js";
import { AGAIN, Problem, effect, html, render, signal, spoken, useEffect, useLoad } from "./ui.js";

/** The views, each fetched when it is shown first. */
const VIEWS = {
  data: () => import("./data.js").then((module) => module.Data),
  label: () => import("./label.js").then((module) => module.Label),
  clusters: () => import("./clusters.js").then((module) => module.Clusters),
  batch: () => import("./batch.js").then((module) => module.Batch),
  doubts: () => import("./doubts.js").then((module) => module.Doubts),
  documents: () => import("./documents.js").then((module) => module.Documents),
  people: () => import("./people.js").then((module) => module.People),
  classes: () => import("./editor.js").then((module) => module.Editor),
  audit: () => import("./audit.js").then((module) => module.Audit),
  models: () => import("./models.js").then((module) => module.Models),
  model: () => import("./model.js").then((module) => module.Model),
  try: () => import("./try.js").then((module) => module.Try),
  jobs: () => import("./jobs.js").then((module) => module.Jobs),
  keys: () => import("./keys.js").then((module) => module.Keys),
};
const TITLES = { data: "Data", label: "Label", clusters: "Clusters", batch: "One class", doubts: "Doubts", audit: "Audit", documents: "Documents", people: "People", classes: "Classes", models: "Models", model: "Model", try: "Try", jobs: "Jobs", keys: "Key" };

/** The views of a dataset. */
const OF_DATA = ["label", "clusters", "batch", "doubts", "audit", "documents", "classes", "people"];

/** The view that was fetched last. */
const shown = signal({ name: "", View: /** @type {any} */ (null) });

/** Why the wanted view was not fetched. */
const missed = signal(/** @type {any} */ (null));

effect(() => {
  const name = wanted();
  VIEWS[/** @type {keyof typeof VIEWS} */ (name)]?.().then(
    (View) => ((shown.value = { name, View }), (missed.value = null)),
    () => loadAgain(name),
  );
});

/** Load the page again, since a browser may not ask twice for a module, once the service answers: before, nothing would be left of the page. Not at once: where it answers but sends no module, it has too much to do.
 * @param {string} name of the view that is missed */
function loadAgain(name) {
  if (wanted() !== name) return;
  get("v1/health/live").then(() => setTimeout(() => location.reload(), AGAIN), (error) => ((missed.value = error), setTimeout(() => loadAgain(name), AGAIN)));
}

/** Fetched once the tour begins. */
const tour = signal(/** @type {any} */ (null));

effect(() => {
  if ((project.value.tour ?? -1) >= 0) import("./tour.js").then(({ Tour }) => void (tour.value ??= Tour), () => {}); // the data can be used without it
});

/** Name of the view to show: where a key is needed, that comes first. */
function wanted() {
  return keyNeeded.value ? "keys" : route.value.view;
}

/** The links of the frame; those of a project lead to the dataset that was opened last. */
function links() {
  const { dataset, model } = project.value;
  const ofDataset = dataset ? OF_DATA.map((view) => [view, to(view, dataset)]) : [];
  return [["data", to("data")], ...ofDataset, ["models", to("models")], ["try", model ? to("try", model) : to("try")], ["jobs", to("jobs")]];
}

function Page() {
  const { view, parts, query } = route.value;
  const name = wanted();
  const without = OF_DATA.includes(name) && !parts[0] && !project.value.dataset;
  const fetched = shown.value.name === name ? shown.value.View : null;
  const View = without ? NoData : !(name in VIEWS) || (name === "model" && parts.length < 2) ? Missing : OF_DATA.includes(name) ? OfData : (fetched ?? Fetching);
  const title = TITLES[/** @type {keyof typeof TITLES} */ (view)] ?? "Nothing here";
  document.title = `${title} · Halfmoon`;
  const current = view === "model" ? "models" : view;
  useEffect(() => {
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    // who chose a view by its link is in that view now
    if (document.activeElement?.matches("header a")) document.querySelector("main")?.focus({ preventScroll: true });
  }, [current]);
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header>
      <a class="brand" href=${to("data")}><img src="page/icon.svg" alt="" width="22" height="22" />Halfmoon</a>
      <nav aria-label="Views">
        ${links().map(([name, link]) => html`<a key=${name} href=${link} aria-current=${name === current ? "page" : undefined}>${TITLES[/** @type {keyof typeof TITLES} */ (name)]}</a>`)}
      </nav>
    </header>
    <main id="main" tabindex="-1">${tour.value && html`<${tour.value} />`}<${View} key=${view + parts.join("/")} view=${fetched} parts=${parts} query=${query} /></main>
    <${Toasts} /><div class="unseen" role="status" aria-live="polite">${spoken}</div>`;
}

function Fetching() {
  return html`<h1 class="unseen">${TITLES[/** @type {keyof typeof TITLES} */ (wanted())] ?? "Nothing here"}</h1>${missed.value ? html`<${Problem} error=${missed.value} />` : html`<p class="quiet">Loading …</p>`}`;
}

/** A view of a dataset, once both are there: the address may name another dataset than was open before. @param {{view: any, parts: string[], query: URLSearchParams}} props */
function OfData({ view: View, parts, query }) {
  const id = parts[0] || project.value.dataset;
  const dataset = useLoad(() => get(`v1/datasets/${part(id)}`).then(open), [id]);
  if (dataset.error) return html`<h1>${dataset.error.status === 404 ? "These data are not here" : TITLES[/** @type {keyof typeof TITLES} */ (route.value.view)]}</h1><${Problem} error=${dataset.error} />${dataset.error.status === 404 && html`<p><a href=${to("data")}>Choose other data</a></p>`}`;
  if (!dataset.value || !View) return html`<${Fetching} />`;
  return html`<${View} parts=${[id, ...parts.slice(1)]} query=${query} dataset=${dataset.value} />`;
}

function NoData() {
  return html`<h1>No data yet</h1><div class="empty"><p>Choose the documents to work on.</p><a class="button primary" href=${to("data")}>Go to the data</a></div>`;
}

function Missing() {
  return html`<div class="empty"><h1>Nothing is here</h1><p><a href=${to("data")}>Go to the data</a></p></div>`;
}

// whichever view is shown, also behind another tab: who comes back wants the next version
setInterval(() => project.value.dataset && !keyNeeded.value && trainerOf(project.value.dataset).look(), 1000);

// a file that misses the field must not take the place of the page
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.querySelector("main")?.focus();
}

render(html`<${Page} />`, /** @type {Element} */ (document.getElementById("page")));
