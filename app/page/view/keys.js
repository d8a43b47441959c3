/** @file The key of a person: given once, kept where no script can read it. */

import { call, keyNeeded } from "./api.js";
import { change } from "./project.js";
import { go, route } from "./route.js";
import { Problem, html, useState } from "./ui.js";

/** @param {{parts: string[], query: URLSearchParams}} props `parts`: the key, if a colleague has sent it in a link */
export function Keys({ parts, query }) {
  const invited = (route.value.view === "keys" && parts[0]) || "";
  const [key, setKey] = useState(invited);
  const [error, setError] = useState(/** @type {any} */ (null));
  const give = async (/** @type {Event} */ event) => {
    event.preventDefault();
    // nobody who looks at the address later needs to see it
    if (invited) history.replaceState(null, "", "#/keys");
    try {
      await call("POST", "page/session", { key: key.trim() });
      keyNeeded.value = false;
      setError(null);
      if (query.get("by")) change({ by: query.get("by") ?? "" });
      if (query.get("dataset")) go("label", query.get("dataset") ?? "");
      else go("data");
    } catch (failure) {
      setError(failure);
    }
  };
  const forget = () => call("DELETE", "page/session").then(() => (keyNeeded.value = true));
  return html`<h1>${invited ? "You are invited" : "Key"}</h1><p>${invited ? "The link has your key. Begin, and label." : keyNeeded.value ? html`This service asks for a key. Who runs it makes one by <code>halfmoon keys create</code>.` : "The service asks for no key now. The one that you gave can be changed or forgotten."}</p>
    <form class="card" onSubmit=${give}><label>Key <input type="password" name="key" value=${key} autocomplete="current-password" required onInput=${(/** @type {any} */ event) => setKey(event.target.value)} /></label>
    <${Problem} error=${error} /><p class="row"><button class="primary">${invited ? "Begin" : "Use this key"}</button>${!keyNeeded.value && html`<button type="button" onClick=${forget}>Forget my key</button>`}</p></form>`;
}
