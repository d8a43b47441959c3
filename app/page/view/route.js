/** @file Which view is shown: the part of the address after #, so that every view has a link. */

import { signal } from "./ui.js";

/** @typedef {{view: string, parts: string[], query: URLSearchParams}} Route */

/** @returns {Route} */
function read() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [view = "", ...parts] = path.split("/").map(decoded);
  return { view: view || "data", parts, query: new URLSearchParams(search) };
}

/** A part of an address, as it is if it was cut or typed wrong. @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = signal(read());

addEventListener("hashchange", () => {
  route.value = read();
  document.querySelector("main")?.focus({ preventScroll: true });
  scrollTo(0, 0);
});

/** The address of a view. @param {string} view @param {(string | number)[]} parts */
export function to(view, ...parts) {
  return `#/${[view, ...parts].map((part) => encodeURIComponent(String(part))).join("/")}`;
}

/** Go to a view. @param {string} view @param {(string | number)[]} parts */
export function go(view, ...parts) {
  location.hash = to(view, ...parts);
}
