/** @file A look into a file before it is sent: what it is, its columns, its first rows. The service reads the file itself. */

import { call } from "./api.js";
import { firstRows } from "./workbook.js";

const LOOK = 256 * 1024;
/** Rows that are looked at. */
const ROWS = 200;
/** Bytes of JSON that the page reads whole: the service reads more, by the names that it knows. */
const LARGEST_JSON = 64 << 20;

/** @typedef {{kind: string, type: string, columns: string[], rows: string[][], note: string, charset?: string, headless?: boolean, mark?: string, body?: Blob}} Look
 * `headless`: whether the first row is read as a document, missing where that cannot be said; `body`: what is sent in place of the file */

const LONGEST_NAME = 60;
/** Classes in the rows that are looked at, their rows in the mean, and their characters. */
const MOST_CLASSES = 20, REPEATED = 3, LONGEST_CLASS = 40;
const SHEETS = ["xls", "ods", "numbers"];
/** Texts that the page sends as documents, a line each: the service does not know them. */
const LINES = { txt: "text/plain" };
/** Look into a file. @param {File} file @returns {Promise<Look>} */
export async function lookInto(file) {
  const ending = file.name.toLowerCase().replace(/\.gz$/, "").split(".").pop() ?? "";
  /** @type {Record<string, string>} */
  const known = { ...(await call("GET", "page/endings.json")), ...LINES };
  const type = known[ending] ?? "";
  if (SHEETS.includes(ending)) throw new Error(`${file.name} is a spreadsheet. Save it as .xlsx or CSV there, and choose that file.`);
  if (!type) throw new Error(`${file.name} is neither a table nor a text. Save the texts as CSV, or as .txt with a document a line. Names of files end in ${Object.keys(known).join(", ")}.`);
  if (!file.size) throw new Error(`${file.name} is empty.`);
  if (ending === "xlsx" && !isPacked(file)) return workbookLook(file, type);
  if (ending === "json" && !isPacked(file) && file.size < LARGEST_JSON) return recordsOf(type, await file.text(), false);
  const packed = isPacked(file), cut = packed || file.size > LOOK;
  const { text, charset } = decoded(packed ? await unpacked(file) : new Uint8Array(await file.slice(0, LOOK).arrayBuffer()), cut);
  const note = charset === "windows-1252" ? "The file is not UTF-8, so it is read as Windows-1252." : "";
  if (type === "text/csv" || type === "text/tab-separated-values") {
    if (text.includes("\u0000")) throw new Error(`${file.name} is not a table: save it as CSV in UTF-8.`);
    const mark = type === "text/csv" ? delimiter(text) : "\t";
    const all = parse(text, mark, cut).filter((row, k) => row.some(Boolean) && (k || !row[0].startsWith("sep=")));
    const titles = titlesAbove(all), rows = all.slice(titles);
    // Excel's “Unicode text”
    const body = charset.startsWith("utf-16") ? new Blob([new TextDecoder(charset).decode(await wholeOf(file))]) : undefined;
    const look = { kind: "table", type: note ? `${type}; charset=windows-1252` : type, body, columns: rows[0] ?? [], rows: rows.slice(1), note: `${note} ${titled(all.slice(0, titles))}`.trim(), headless: titles ? undefined : false, mark };
    if (rows.length && !titles && looksHeadless(rows)) return withoutNames(look);
    if (rows.length < 2) throw new Error(`${file.name} has no rows below the names of its columns.`);
    const twice = look.columns.find((name, k) => name && look.columns.indexOf(name) < k);
    return twice ? { ...look, note: `${look.note} Two columns are named “${twice}”. Give one of them another name in the file.` } : look;
  }
  if (type === "text/plain") {
    if (text.includes("\u0000")) throw new Error(`${file.name} is no text: save it in UTF-8.`);
    const rows = text.split(/\r?\n/).filter((line) => line.trim()).slice(0, 5);
    return { kind: "lines", charset, type: "application/x-ndjson", columns: ["text"], rows: rows.map((row) => [row]), note };
  }
  if (type === "application/x-ndjson") return recordsOf(type, text, cut);
  return { kind: "documents", type, columns: [], rows: [], note: "" };
}

/** The look at JSON. @param {string} type @param {string} text @param {boolean} cut whether it may end within a line */
const recordsOf = async (type, text, cut) => (await import("./records.js")).recordsLook(type, text, cut);

/** The look at a workbook; where the page cannot read it, the service says why. @param {File} file @param {string} type @returns {Promise<Look>} */
async function workbookLook(file, type) {
  const found = await firstRows(file).catch(() => undefined);
  if (found === null) throw new Error(`${file.name} has no rows below the names of its columns.`);
  if (!found) return { kind: "documents", type, columns: [], rows: [], note: "" };
  const { rows: all, title, others } = found;
  const titles = titlesAbove(all), rows = all.slice(titles);
  const sheets = others.length ? `The sheet “${title}” is read, and not ${others.map((each) => `“${each}”`).join(", ")}. ` : "";
  return { kind: "table", type, columns: rows[0], rows: rows.slice(1), note: `${sheets}${titled(all.slice(0, titles))}${looksHeadless(rows) ? "The first row has the names of the columns. If it is a document, put a row with names above it." : ""}` };
}

/** @param {File} file */
export const isPacked = (file) => file.name.toLowerCase().endsWith(".gz");

/** @param {File} file */
const unpack = (file) => file.stream().pipeThrough(new DecompressionStream("gzip"));

/** @param {File} file */
const wholeOf = (file) => new Response(isPacked(file) ? unpack(file) : file).arrayBuffer();

/** The first bytes of a packed file; throws if it is not one. @param {File} file */
async function unpacked(file) {
  const reader = unpack(file).getReader();
  let bytes = new Uint8Array();
  try {
    while (bytes.length < LOOK) {
      const { value, done } = await reader.read();
      if (done) break;
      bytes = new Uint8Array([...bytes, ...value]);
    }
  } catch {
    throw new Error(`${file.name} is not packed by gzip, or damaged.`);
  }
  reader.cancel();
  return bytes.slice(0, LOOK);
}

/** Whether the first row looks like a document: read as names, it would be lost. The questions of a survey are names: no number stands above its numbers and dates.
 * @param {string[][]} rows */
const looksHeadless = ([first, ...others]) => first.some((name) => name.length > LONGEST_NAME || name.trim().split(/\s+/).length > 3) && !first.some((name, k) => name.trim() && !isNumbered(name) && others.length > 1 && others.every((row) => isNumbered(row[k])));

/** Whether a cell begins with a number, as a date does. @param {string} cell */
const isNumbered = (cell) => /^\s*[-+]?\d/.test(cell ?? "");

/** The look at a table whose first row is a document: its columns have numbers for names. @param {Look} look @returns {Look} */
export const withoutNames = (look) => ({ ...look, headless: true, columns: look.columns.map((_, k) => `column ${k + 1}`), rows: [look.columns, ...look.rows] });

/** The look at a table whose first row has the names of the columns. @param {Look} look @returns {Look} */
export const withNames = (look) => ({ ...look, headless: false, columns: look.rows[0], rows: look.rows.slice(1) });

/** A table with names of columns above its first row. @param {File} file @param {Look} look */
export async function named(file, look) {
  return new Blob([`${look.columns.join(look.mark)}\n`, look.body ?? (isPacked(file) ? await new Response(unpack(file)).blob() : file)]);
}

/** A file of lines as documents. @param {File} file @param {string} [charset] */
export async function documentsOfLines(file, charset) {
  const lines = new TextDecoder(charset).decode(await wholeOf(file)).split(/\r?\n/).filter((line) => line.trim());
  return new Blob(lines.map((text) => `${JSON.stringify({ text })}\n`));
}

/** Whether a column has numbers alone, so that it is hardly the text. @param {Look} look @param {string} column */
export function isNumeric({ columns, rows }, column) {
  const values = rows.map((row) => row[columns.indexOf(column)]?.trim()).filter(Boolean);
  return values.length > 0 && values.every((value) => !Number.isNaN(Number(value.replace(",", "."))));
}

/** Which column probably has which part. @param {Look} look */
export function guess({ columns, rows }) {
  const named = (/** @type {string[]} */ names) => columns.find((column) => names.includes(column.trim().toLowerCase())) ?? "";
  const length = (/** @type {number} */ k) => rows.reduce((sum, row) => sum + (row[k]?.length ?? 0), 0);
  const longest = columns.map((column, k) => ({ column, length: length(k) })).sort((a, b) => b.length - a.length)[0]?.column ?? "";
  const text = named(["text", "body", "message", "content", "sms", "tweet", "review", "document", "sentence"]) || longest;
  return { text, label: named(["label", "labels", "class", "category", "topic", "tag", "target", "sentiment", "kind"]), id: named(["id", "key", "uid"]) };
}

/** Columns other than those that are chosen, of which each looks as if it held classes, with their values. @param {Look} look @param {Record<string, string>} chosen @returns {[string, string[]][]} */
export function classLike({ columns, rows }, chosen) {
  return columns.flatMap((column, k) => {
    const given = rows.map((row) => row[k]?.trim()).filter(Boolean), values = [...new Set(given)];
    const few = values.length > 1 && values.length <= MOST_CLASSES && REPEATED * values.length <= given.length;
    return few && !Object.values(chosen).includes(column) && values.every((value) => value.length <= LONGEST_CLASS) ? [[column, values]] : [];
  });
}

/** The columns that say of a label each whether it applies, as far as the rows show. @param {Look} look */
export function indicators({ columns, rows }) {
  const known = /^(1|0|1\.0|0\.0|true|false|yes|no)?$/i;
  return columns.filter((_, k) => rows.some((row) => row[k]?.trim()) && rows.every((row) => known.test((row[k] ?? "").trim())));
}

/** @param {Uint8Array} bytes @param {boolean} cut whether the bytes may end within a character */
function decoded(bytes, cut) {
  for (const [charset, mark] of /** @type {[string, number][]} */ ([["utf-16le", 0xff], ["utf-16be", 0xfe]])) {
    if (bytes[0] === mark && bytes[1] === (mark ^ 1)) return { text: new TextDecoder(charset).decode(bytes, { stream: cut }), charset };
  }
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: cut }), charset: "utf-8" };
  } catch {
    return { text: new TextDecoder("windows-1252").decode(bytes), charset: "windows-1252" };
  }
}

/** Rows above the names of the columns, at most: titles. */
const MOST_TITLES = 16;

/** Number of the titles of a table: rows of one cell at most, over a row without an empty one. @param {string[][]} rows */
export function titlesAbove(rows) {
  const place = rows.slice(0, MOST_TITLES).findIndex((row) => row.filter(Boolean).length > 1);
  return place > 0 && rows[place].every(Boolean) && rows[place].length >= rows[0].length ? place : 0;
}

/** What is said of titles, of which the service reads none. @param {string[][]} rows */
const titled = (rows) => (rows.length ? `The names of the columns stand below “${rows.flat().find(Boolean)}”, which is left out. ` : "");

/** The delimiter of a table: the one that the first line which has any has most often. @param {string} text */
function delimiter(text) {
  const lines = text.split(/\r?\n/, MOST_TITLES), line = lines.find((each) => /[,;\t|]/.test(each)) ?? lines[0];
  return [",", ";", "\t", "|"].map((mark) => ({ mark, count: line.split(mark).length })).sort((a, b) => b.count - a.count)[0].mark;
}

/** The first rows of a table (RFC 4180), as far as they are whole. @param {string} text @param {string} mark @param {boolean} cut whether the text may end within a row */
function parse(text, mark, cut) {
  /** @type {string[][]} */
  const rows = [];
  let row = /** @type {string[]} */ ([]), field = "", quoted = false;
  for (let k = 0; k < text.length && rows.length < ROWS; k += 1) {
    const sign = text[k];
    if (quoted) {
      if (sign !== '"') field += sign;
      else if (text[k + 1] === '"') (field += '"'), (k += 1);
      else quoted = false;
    } else if (sign === '"' && field === "") quoted = true;
    else if (sign === mark) row.push(field), (field = "");
    else if (sign === "\n") rows.push([...row, field.replace(/\r$/, "")]), (row = []), (field = "");
    else field += sign;
  }
  if ((field || row.length) && (!cut || !rows.length)) rows.push([...row, field]);
  return rows;
}
