/** @file A look into JSON before it is sent: objects with names of any kind are a table, whose columns a person chooses. */

const ROWS = 200;
/** Fields of documents that have more than a text and a label, which the service reads by itself. */
const OWN = ["features", "indices", "values", "vector", "vectors", "fields", "votes", "labels", "not"];

/** The look at lines of JSON, or at an array of it, which is sent as lines. @param {string} type @param {string} text @param {boolean} cut whether it may end within a line
 * @returns {import("./table.js").Look} */
export function recordsLook(type, text, cut) {
  const array = type === "application/json" ? arrayIn(text) : null;
  const records = array ?? linesOf(text, cut);
  /** @type {import("./table.js").Look} */
  const look = { kind: "documents", type, columns: [], rows: [], note: "" };
  if (!records?.length || !records.every(isObject)) return look;
  const columns = [...new Set(records.slice(0, ROWS).flatMap(Object.keys))];
  const sent = array ? { type: "application/x-ndjson", body: new Blob(array.map((each) => `${JSON.stringify(each)}\n`)) } : {};
  if (columns.some((name) => OWN.includes(name))) return { ...look, ...sent };
  return { ...look, ...sent, kind: "table", columns, rows: records.slice(0, ROWS).map((each) => columns.map((name) => shown(each[name]))) };
}

/** @param {any} value */
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** @param {any} value */
const shown = (value) => (typeof value === "string" ? value : (value ?? null) === null ? "" : JSON.stringify(value));

/** The array that a text is, or the only one in its object; null if there is none. @param {string} text @returns {any[] | null} */
function arrayIn(text) {
  try {
    const value = JSON.parse(text);
    const arrays = Array.isArray(value) ? [value] : Object.values(value ?? {}).filter(Array.isArray);
    return arrays.length === 1 ? arrays[0] : null;
  } catch {
    return null;
  }
}

/** The first objects of lines; null where a line is none. @param {string} text @param {boolean} cut @returns {any[] | null} */
function linesOf(text, cut) {
  const lines = text.split("\n");
  try {
    return lines.slice(0, cut ? -1 : undefined).filter((line) => line.trim()).slice(0, ROWS).map((line) => JSON.parse(line));
  } catch {
    return null;
  }
}
