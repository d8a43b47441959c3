/** @file Calls of the service. Addresses are relative, so that the page works below a prefix. */

import { signal } from "./ui.js";

/** Whether the service asks for a key that was not given yet. */
export const keyNeeded = signal(false);

/** What every call says: the header shows that no other site sent it. */
export const OWN = { "X-Halfmoon-Page": "1", Accept: "application/json" };

/** A refusal of the service, or its absence (`status` 0). */
export class Refusal extends Error {
  /** @param {number} status @param {string} message @param {any[]} [faults] @param {string} [type] address of the page about its type */
  constructor(status, message, faults = [], type = "") {
    super(message);
    this.status = status;
    this.faults = faults;
    this.type = type;
  }
}

/** Call the service; throws Refusal. @param {string} method @param {string} path @param {any} [body] @param {Record<string, string>} [headers] */
export async function call(method, path, body, headers = {}) {
  const raw = body instanceof Blob;
  /** @type {Record<string, string>} */
  const type = body === undefined || raw ? {} : { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: { ...OWN, ...type, ...headers },
      body: raw || body === undefined ? body : JSON.stringify(body),
    });
  } catch {
    throw new Refusal(0, "The service does not answer. It is tried again by itself.");
  }
  return received(answer);
}

/** What an answer has; throws Refusal. @param {Response} answer */
export async function received(answer) {
  if (answer.status === 401) keyNeeded.value = true;
  if (!answer.ok) throw await refusal(answer);
  return answer.status === 204 ? null : answer.json();
}

/** @param {Response} answer */
async function refusal(answer) {
  const problem = await answer.json().catch(() => ({}));
  return new Refusal(answer.status, problem.detail ?? `The service answered ${answer.status}.`, problem.errors, problem.type);
}

/** @param {string} path @param {Record<string, any>} [query] */
export const get = (path, query = {}) => call("GET", asked(path, query));

/** Save what a call answers as a file of this name; throws Refusal. @param {string} path @param {Record<string, any>} query @param {string} type @param {string} name */
export async function save(path, query, type, name) {
  const answer = await fetch(asked(path, query), { headers: { ...OWN, Accept: type } }).catch(() => {
    throw new Refusal(0, "The service does not answer. Try again.");
  });
  if (!answer.ok) throw await refusal(answer);
  const link = document.createElement("a"), blob = await answer.blob();
  // without the mark Excel takes it for another encoding
  const marked = type === "text/csv" && /[^\0-\x7f]/.test(await blob.text());
  link.href = URL.createObjectURL(marked ? new Blob(["\ufeff", blob]) : blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** A path with the parts of a query that are given. @param {string} path @param {Record<string, any>} query */
function asked(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

/** @param {string} path @param {any} body */
export const post = (path, body) => call("POST", path, body);

/** @param {string} path @param {any} body */
export const put = (path, body) => call("PUT", path, body);

/** A part of a path. @param {string | number} part */
export const part = (part) => encodeURIComponent(String(part));

/** Whether a job has ended. @param {{state: string}} job */
export const isOver = ({ state }) => ["succeeded", "failed", "cancelled"].includes(state);

/** A model with its versions, or null if there is none of that name yet: it is looked up in the list, which is not an error. @param {string} name */
export async function modelOf(name) {
  let cursor;
  do {
    const page = await get("v1/models", { limit: 500, cursor });
    if (page.models.some((/** @type {any} */ each) => each.name === name)) return get(`v1/models/${part(name)}`);
    cursor = page.next_cursor;
  } while (cursor);
  return null;
}
