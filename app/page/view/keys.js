/** @file The key of a person: given once, kept where no script can read it. */

import { call, keyNeeded } from "./api.js";
import { go } from "./route.js";
import { Problem, html, useState } from "./ui.js";

export function Keys() {
  const [key, setKey] = useState("");
  const [error, setError] = useState(/** @type {any} */ (null));
  const give = async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      await call("POST", "page/session", { key: key.trim() });
      keyNeeded.value = false;
      setError(null);
      go("data");
    } catch (failure) {
      setError(failure);
    }
  };
  const forget = () => call("DELETE", "page/session").then(() => (keyNeeded.value = true));
  return html`<h1>Key</h1><p>This service asks for a key. Who runs it makes one by <code>halfmoon keys create</code>.</p>
    <form class="card" onSubmit=${give}><label>Key <input type="password" name="key" value=${key} autocomplete="current-password" required onInput=${(/** @type {any} */ event) => setKey(event.target.value)} /></label>
    <${Problem} error=${error} /><p class="row"><button class="primary">Use this key</button>${!keyNeeded.value && html`<button type="button" onClick=${forget}>Forget my key</button>`}</p></form>`;
}
