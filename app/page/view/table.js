/** @file A look into a file before it is sent: what it is, its columns, its first rows. The service reads the file itself. */

const LOOK = 256 * 1024;

/** @typedef {{kind: string, type: string, columns: string[], rows: string[][], note: string}} Look */

const TYPES = {
  csv: "text/csv",
  tsv: "text/tab-separated-values",
  tab: "text/tab-separated-values",
  ndjson: "application/x-ndjson",
  jsonl: "application/x-ndjson",
  json: "application/json",
  npz: "application/x-npz",
  svm: "text/x-svmlight",
  svmlight: "text/x-svmlight",
  txt: "text/plain",
};

/** Look into a file. @param {File} file @returns {Promise<Look>} */
export async function lookInto(file) {
  const ending = file.name.toLowerCase().replace(/\.gz$/, "").split(".").pop() ?? "";
  const type = TYPES[/** @type {keyof typeof TYPES} */ (ending)] ?? "";
  if (!type) throw new Error(`${file.name}: the name must end in ${Object.keys(TYPES).join(", ")}.`);
  const { text, charset } = decoded(new Uint8Array(await file.slice(0, LOOK).arrayBuffer()), file.size > LOOK);
  const note = charset === "utf-8" ? "" : "The file is not UTF-8, so it is read as Windows-1252.";
  if (type === "text/csv" || type === "text/tab-separated-values") {
    const rows = parse(text, type === "text/csv" ? delimiter(text) : "\t").slice(0, 7);
    return { kind: "table", type: note ? `${type}; charset=windows-1252` : type, columns: rows[0] ?? [], rows: rows.slice(1, 6), note };
  }
  if (type === "text/plain") {
    const rows = text.split(/\r?\n/).filter(Boolean).slice(0, 5);
    return { kind: "lines", type: "application/x-ndjson", columns: ["text"], rows: rows.map((row) => [row]), note };
  }
  return { kind: "documents", type, columns: [], rows: [], note: "" };
}

/** A file of lines as documents. @param {File} file */
export async function documentsOfLines(file) {
  const lines = (await file.text()).split(/\r?\n/).filter((line) => line.trim());
  return new Blob(lines.map((text) => `${JSON.stringify({ text })}\n`));
}

/** Which column probably has which part. @param {Look} look */
export function guess({ columns, rows }) {
  const named = (/** @type {string[]} */ names) => columns.find((column) => names.includes(column.trim().toLowerCase())) ?? "";
  const length = (/** @type {number} */ k) => rows.reduce((sum, row) => sum + (row[k]?.length ?? 0), 0);
  const longest = columns.map((column, k) => ({ column, length: length(k) })).sort((a, b) => b.length - a.length)[0]?.column ?? "";
  const text = named(["text", "body", "message", "content", "sms", "tweet", "review", "document", "sentence"]) || longest;
  return { text, label: named(["label", "class", "category", "topic", "tag", "target"]), id: named(["id", "key", "uid"]) };
}

/** @param {Uint8Array} bytes @param {boolean} cut whether the bytes may end within a character */
function decoded(bytes, cut) {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: cut }), charset: "utf-8" };
  } catch {
    return { text: new TextDecoder("windows-1252").decode(bytes), charset: "windows-1252" };
  }
}

/** The delimiter of a table: the one that the first line has most often. @param {string} text */
function delimiter(text) {
  const line = text.slice(0, text.search(/\r?\n|$/));
  return [",", ";", "\t", "|"].map((mark) => ({ mark, count: line.split(mark).length })).sort((a, b) => b.count - a.count)[0].mark;
}

/** The rows of a table (RFC 4180), as far as they are whole. @param {string} text @param {string} mark */
function parse(text, mark) {
  /** @type {string[][]} */
  const rows = [];
  let row = /** @type {string[]} */ ([]), field = "", quoted = false;
  for (let k = 0; k < text.length && rows.length < 8; k += 1) {
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
  if (field || row.length) rows.push([...row, field]);
  return rows;
}
