/** @file A tour of six steps, from the first answer to the file with all labels. */

import { project, change } from "./project.js";
import { go } from "./route.js";
import { html, useEffect, useRef } from "./ui.js";

/** @type {{view: string, title: string, text: string}[]} */
const STEPS = [
  { view: "label", title: "Answer a few", text: "Read the message, and press the key of its class: 1, 2 or 3. Space skips, u takes back. Give some twenty answers." },
  { view: "label", title: "The model learns", text: "After twenty answers it trains by itself, also from the messages that nobody labeled. The right side says how often it is right." },
  { view: "batch", title: "Many at once", text: "These are the likeliest messages of one class. Take out what is wrong, and confirm the others with Enter." },
  { view: "doubts", title: "Look again", text: "Here are labels that look wrong to a model which was not told them. Keep them, or change them." },
  { view: "audit", title: "May it be trusted?", text: "Draw 50. A random sample is the only thing that says how often the model is wrong, and what it may label by itself." },
  { view: "documents", title: "Take it with you", text: "All messages with their labels and what the model says: look, search, change, and download them as a file." },
];

/** The step that is shown, until the tour is ended. */
export function Tour() {
  const place = project.value.tour ?? -1;
  const step = STEPS[place], dataset = project.value.dataset;
  const shown = useRef(place);
  useEffect(() => {
    if (shown.current !== place && step) go(step.view, dataset);
    shown.current = place;
  }, [place]);
  if (!step || !dataset) return null;
  const move = (/** @type {number} */ by) => {
    change({ tour: place + by });
    /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
  };
  return html`<aside class="tour notice" aria-label="Tour"><p aria-live="polite"><b>${place + 1} of ${STEPS.length}: ${step.title}.</b> ${step.text}</p>
    <p class="row">${place > 0 && html`<button class="small" onClick=${() => move(-1)}>Back</button>`}${place < STEPS.length - 1 ? html`<button class="small primary" onClick=${() => move(1)}>Next</button>` : ""}
    <button class="small" onClick=${() => change({ tour: -1 })}>End the tour</button></p></aside>`;
}
