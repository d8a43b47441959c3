/** @file The page: its frame, and the view that the address names. */

import { keyNeeded } from "./api.js";
import { Audit } from "./audit.js";
import { Batch } from "./batch.js";
import { Data } from "./data.js";
import { Doubts } from "./doubts.js";
import { Jobs } from "./jobs.js";
import { Keys } from "./keys.js";
import { Label } from "./label.js";
import { Model } from "./model.js";
import { Models } from "./models.js";
import { project } from "./project.js";
import { route, to } from "./route.js";
import { Try } from "./try.js";
import { html, render, spoken } from "./ui.js";

const VIEWS = { data: Data, label: Label, batch: Batch, doubts: Doubts, audit: Audit, models: Models, model: Model, try: Try, jobs: Jobs, keys: Keys };
const TITLES = { data: "Data", label: "Label", batch: "One class", doubts: "Doubts", audit: "Audit", models: "Models", model: "Model", try: "Try", jobs: "Jobs", keys: "Key" };

/** The links of the frame; those of a project lead to the dataset that was opened last. */
function links() {
  const { dataset, model } = project.value;
  const ofDataset = dataset ? ["label", "batch", "doubts", "audit"].map((view) => [view, to(view, dataset)]) : [];
  return [["data", to("data")], ...ofDataset, ["models", to("models")], ["try", model ? to("try", model) : to("try")], ["jobs", to("jobs")]];
}

function Page() {
  const { view, parts, query } = route.value;
  const View = keyNeeded.value ? Keys : (VIEWS[/** @type {keyof typeof VIEWS} */ (view)] ?? Missing);
  const title = TITLES[/** @type {keyof typeof TITLES} */ (view)] ?? "Nothing here";
  document.title = `${title} · Halfmoon`;
  const current = view === "model" ? "models" : view;
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header>
      <a class="brand" href=${to("data")}><img src="page/icon.svg" alt="" width="22" height="22" />Halfmoon</a>
      <nav aria-label="Views">
        ${links().map(([name, link]) => html`<a key=${name} href=${link} aria-current=${name === current ? "page" : undefined}>${TITLES[/** @type {keyof typeof TITLES} */ (name)]}</a>`)}
      </nav>
    </header>
    <main id="main" tabindex="-1"><${View} key=${view + parts.join("/")} parts=${parts} query=${query} /></main>
    <div class="unseen" role="status" aria-live="polite">${spoken}</div>`;
}

function Missing() {
  return html`<div class="empty"><h1>Nothing is here</h1><p><a href=${to("data")}>Go to the data</a></p></div>`;
}

/** @param {Event} event */
function skip(event) {
  event.preventDefault();
  document.querySelector("main")?.focus();
}

render(html`<${Page} />`, /** @type {Element} */ (document.getElementById("page")));
