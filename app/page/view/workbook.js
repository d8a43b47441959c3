/** @file The first rows of a workbook, for the look before it is sent: a zip of XML, read as far as they go. The service reads the file itself. */

const TAIL = 65_557, DIRECTORY = 0x02014b50, END = 0x06054b50, STORED = 0;
const MOST = 4 << 20, ROWS = 200;
/** Days from the first day of Excel to that of Unix. */
const EPOCH = 25_569;
const BUILT_IN_DATES = [14, 15, 16, 17, 22];
/** @type {Record<string, string>} */
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** The first rows of the sheet that the service reads, the first with more than one, and the titles of the others; null if there is none. Throws where they
 * cannot be read. @param {File} file @returns {Promise<{rows: string[][], title: string, others: string[]} | null>} */
export async function firstRows(file) {
  const entries = await directory(file);
  const text = async (/** @type {string} */ name) => { const entry = entries.get(name); return entry ? await content(file, entry) : ""; };
  const [book, related, strings, styles] = await Promise.all(["xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/sharedStrings.xml", "xl/styles.xml"].map(text));
  const shared = elements(strings, "si").map(({ inner }) => plain(inner));
  const dates = dateStyles(styles);
  const targets = new Map(elements(related, "Relationship").map(({ attributes }) => [attributes.Id, attributes.Target]));
  const shown = elements(book, "sheet").map(({ attributes }) => attributes).filter(({ state }) => !state?.toLowerCase().includes("hidden"));
  for (const attributes of shown) {
    const target = targets.get(attributes["r:id"]) ?? "";
    const rows = rowsOf(await text(target.startsWith("/") ? target.slice(1) : `xl/${target}`), shared, dates);
    if (rows.length > 1) return { rows, title: attributes.name, others: shown.filter((each) => each !== attributes).map(({ name }) => name) };
  }
  return null;
}

/** @param {string} sheet @param {string[]} shared @param {Set<number>} dates */
function rowsOf(sheet, shared, dates) {
  /** @type {string[][]} */
  const rows = [];
  for (const { inner } of elements(sheet, "row", true)) {
    const row = /** @type {string[]} */ ([]);
    for (const { attributes, inner: cell } of elements(inner, "c")) row[attributes.r ? column(attributes.r) : row.length] = shownAs(cell, attributes, shared, dates);
    if (row.some(Boolean)) rows.push(row);
    if (rows.length === ROWS) break;
  }
  const width = Math.max(0, ...rows.map((row) => row.length)), first = Math.min(...rows.map((row) => row.findIndex((cell) => cell !== undefined)));
  return rows.map((row) => Array.from({ length: width }, (_, k) => row[k] ?? "").slice(first));
}

/** @param {string} cell @param {Record<string, string>} attributes @param {string[]} shared @param {Set<number>} dates */
function shownAs(cell, { t, s }, shared, dates) {
  if (t === "inlineStr") return plain(cell);
  const value = unescaped(elements(cell, "v")[0]?.inner ?? "");
  if (t === "s") return shared[Number(value)] ?? "…";
  if (t === "b") return value === "1" ? "TRUE" : "FALSE";
  if (t === "e" || value === "") return "";
  if (t === "str" || t === "d") return value;
  if (dates.has(Number(s))) return new Date(Math.round((Number(value) - EPOCH) * 86_400) * 1000).toISOString().replace("T", " ").replace(/( 00:00:00)?\.\d+Z$/, "");
  return String(Number(Number(value).toPrecision(15)));
}

/** Which formats of cells are dates. @param {string} styles */
function dateStyles(styles) {
  const own = elements(styles, "numFmt").filter(({ attributes }) => /[dy]/i.test(attributes.formatCode.replace(/"[^"]*"|\[[^\]]*\]|\\./g, ""))).map(({ attributes }) => Number(attributes.numFmtId));
  const formats = elements(elements(styles, "cellXfs")[0]?.inner ?? "", "xf");
  return new Set(formats.flatMap(({ attributes }, k) => ([...BUILT_IN_DATES, ...own].includes(Number(attributes.numFmtId)) ? [k] : [])));
}

/** Number of the column of a place such as AB12, from 0. @param {string} place */
const column = (place) => [...place.replace(/\d+/g, "")].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;

/** The texts of a string, without its hints of reading. @param {string} inner */
const plain = (inner) => elements(inner.replace(/<(?:\w+:)?rPh\b.*?<\/(?:\w+:)?rPh>/gs, ""), "t").map((each) => unescaped(each.inner)).join("");

/** @param {string} text */
const unescaped = (text) => text.replace(/&(?:#x([0-9a-f]+)|#(\d+)|(\w+));/gi, (all, hex, digits, name) => (name ? ENTITIES[name] ?? all : String.fromCodePoint(hex ? parseInt(hex, 16) : Number(digits))));

/** The elements of a name, which do not hold others of it; of many rows the first are enough. @param {string} xml @param {string} name @param {boolean} [few] */
function elements(xml, name, few = false) {
  const found = [];
  for (const [, given, inner] of xml.matchAll(new RegExp(`<(?:\\w+:)?${name}(?=[\\s/>])([^>]*?)(?:/>|>(.*?)</(?:\\w+:)?${name}>)`, "gs"))) {
    const attributes = Object.fromEntries([...given.matchAll(/([\w:]+)="([^"]*)"/g)].map(([, key, value]) => [key, unescaped(value)]));
    found.push({ attributes, inner: inner ?? "" });
    if (few && found.length === 2 * ROWS) break;
  }
  return found;
}

/** Where the files of a zip are. @param {File} file */
async function directory(file) {
  const from = Math.max(0, file.size - TAIL);
  const tail = new DataView(await file.slice(from).arrayBuffer());
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== END) end -= 1;
  if (end < 0) throw new Error(`${file.name} is no workbook, or cut short.`);
  const start = tail.getUint32(end + 16, true), view = new DataView(await file.slice(start, start + tail.getUint32(end + 12, true)).arrayBuffer());
  /** @type {Map<string, {method: number, size: number, at: number}>} */
  const entries = new Map();
  for (let at = 0; at + 46 <= view.byteLength && view.getUint32(at, true) === DIRECTORY; ) {
    const name = view.getUint16(at + 28, true);
    entries.set(new TextDecoder().decode(new Uint8Array(view.buffer, at + 46, name)), { method: view.getUint16(at + 10, true), size: view.getUint32(at + 20, true), at: view.getUint32(at + 42, true) });
    at += 46 + name + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return entries;
}

/** The beginning of a file in a zip, as text. @param {File} file @param {{method: number, size: number, at: number}} entry */
async function content(file, { method, size, at }) {
  const head = new DataView(await file.slice(at, at + 30).arrayBuffer());
  const begin = at + 30 + head.getUint16(26, true) + head.getUint16(28, true), packed = file.slice(begin, begin + size);
  const reader = (method === STORED ? packed.stream() : packed.stream().pipeThrough(new DecompressionStream("deflate-raw"))).getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (text.length < MOST) {
    const { value, done } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  reader.cancel();
  return text;
}
