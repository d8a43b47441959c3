/** @file Sample texts to try the page with: messages to a shop, put together from phrases, always the same ones. */

import { put } from "./api.js";
import { send } from "./send.js";

export const CLASSES = ["delivery", "payment", "account"];
const COUNT = 400;
const OPENINGS = ["Hello,", "Hi there,", "Good morning,", "Dear team,", "Hello again,", "Just a question:", "Please help:", ""];
const CLOSINGS = ["Thank you!", "Many thanks.", "Please answer soon.", "Best regards", "What can I do?", "I wait for your answer.", "That is not what I expected.", ""];
/** For each class the beginnings and the ends of what is asked. @type {Record<string, [string[], string[]]>} */
const ASKED = {
  delivery: [
    ["my parcel", "the order from last week", "the package for my sister", "a box that I ordered", "the second half of my order", "the courier"],
    ["has not arrived yet", "was left in the rain at the wrong door", "is late by four days", "cannot be tracked any more", "came back to the depot", "should go to another address"],
  ],
  payment: [
    ["my card", "the invoice", "the refund for the shoes", "the amount of 40 euros", "the voucher", "your bill from May"],
    ["was charged twice", "is missing on my bank statement", "shows the wrong price", "has not been paid back", "is refused at the checkout", "has a tax that I do not understand"],
  ],
  account: [
    ["my password", "the login page", "my user name", "the profile of my wife", "the app on my phone", "the mail to confirm my address"],
    ["is not accepted any more", "cannot be changed", "signs me out every time", "never comes, so I cannot register", "shows the data of somebody else", "should be deleted, please"],
  ],
};

/** A document of the sample, with what it is about. @typedef {{id: string, text: string, about: string}} Sample */

/** The documents, in an order that mixes the classes. @returns {Sample[]} */
export function sample() {
  let state = 7;
  const below = (/** @type {number} */ count) => ((state = (state * 1103515245 + 12345) % 2147483648), Math.floor((state / 2147483648) * count));
  const one = (/** @type {string[]} */ listed) => listed[below(listed.length)];
  return Array.from({ length: COUNT }, (_, k) => {
    // deliveries are asked about the most
    const about = CLASSES[[0, 0, 0, 1, 1, 2][below(6)]];
    const [subjects, complaints] = ASKED[about];
    const said = [one(OPENINGS), one(subjects), one(complaints)].filter(Boolean).join(" ");
    return { id: `message ${k + 1}`, text: `${said.charAt(0).toUpperCase()}${said.slice(1)}. ${one(CLOSINGS)}`.trim(), about };
  });
}

/** Send the sample as a dataset with its classes; throws Refusal. */
export async function sendSample() {
  const lines = sample().map(({ id, text }) => `${JSON.stringify({ id, text })}\n`);
  const dataset = await send("v1/datasets?name=sample", new Blob(lines), { "Content-Type": "application/x-ndjson" }, () => {}, new AbortController().signal);
  await put(`v1/datasets/${encodeURIComponent(dataset.id)}/classes`, { classes: CLASSES.map((name) => ({ name })) });
  return dataset;
}
