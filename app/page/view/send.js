/** @file Large bodies on their way to the service. */

import { OWN, Refusal, received } from "./api.js";

/** Send a large body, and say how much of it is sent, which fetch does not; throws Refusal, also if it was stopped.
 * @param {string} path @param {Blob} body @param {Record<string, string>} headers @param {(share: number) => void} onSent @param {AbortSignal} signal
 * @returns {Promise<any>} */
export function send(path, body, headers, onSent, signal) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [name, value] of Object.entries({ ...OWN, ...headers })) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => onSent(loaded / total);
    request.onload = () => received(new Response(request.responseText, { status: request.status })).then(resolve, reject);
    request.onerror = () => reject(new Refusal(0, "The service cannot be reached, or ended the connection. Send the file again."));
    request.onabort = () => reject(new Refusal(0, "Stopped."));
    signal.addEventListener("abort", () => request.abort());
    request.send(body);
  });
}
