/** @file Values that a browser keeps as JSON. One that keeps nothing, or has no room, does without: nothing fails by it. */

/** @typedef {"localStorage" | "sessionStorage"} Place for all tabs, also after a restart; for one tab */

/** The value of a key; what is `missing` where there is none. @template T @param {string} key @param {T} missing @param {Place} place @returns {T} */
export function stored(key, missing, place = "localStorage") {
  try {
    return JSON.parse(window[place].getItem(key) ?? "null") ?? missing;
  } catch {
    return missing;
  }
}

/** Keep a value, as far as the browser does. @param {string} key @param {unknown} value @param {Place} place */
export function store(key, value, place = "localStorage") {
  try {
    window[place].setItem(key, JSON.stringify(value));
  } catch {
    // what is not kept lasts as long as the page
  }
}

/** The keys for all tabs that begin so. @param {string} prefix @returns {string[]} */
export function keysFrom(prefix) {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  } catch {
    return [];
  }
}

/** Forget the value of a key for all tabs. @param {string} key */
export function remove(key) {
  try {
    localStorage.removeItem(key);
  } catch {
    // nothing was kept
  }
}
