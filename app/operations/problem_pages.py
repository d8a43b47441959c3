"""A page for every type of problem, at the address that problems name: its cause and its remedy."""

from collections.abc import Mapping
from html import escape
from typing import NamedTuple

from app.errors import PROBLEM_TYPES
from storage.problems import TIMED_OUT, WORKER_DIED, ProblemType

_OF_HTTP = (
    ProblemType(405, "method-not-allowed", "Method Not Allowed"),
    ProblemType(400, "bad-request", "Bad Request"),
)
PAGES: Mapping[str, ProblemType] = {
    each.type: each for each in (*PROBLEM_TYPES.values(), TIMED_OUT, WORKER_DIED, *_OF_HTTP)
}
"""The types that answers and jobs may name, by the end of their address."""


class Advice(NamedTuple):
    """Advice about a type of problem."""

    cause: str
    remedy: str


_AGAIN = "Send the request again after the seconds of Retry-After; nothing of it was kept."
ADVICE = {
    "invalid-documents": Advice(
        "Documents, their labels or ids cannot be used. `errors` names up to twenty of them, each with its field.",
        "Correct what is named and send all documents again: nothing of the body was kept.",
    ),
    "invalid-option": Advice(
        "An option of the job is unknown, of the wrong type or out of its range.",
        "docs/algorithms.md has every option.",
    ),
    "unknown-algorithm": Advice(
        "There is no algorithm of that name.",
        "Leave `algorithm` out: `auto` chooses one. docs/algorithms.md lists all.",
    ),
    "model-too-large": Advice(
        "A model of kernels keeps documents, and these are more than a model may have.", "Do what the detail says."
    ),
    "job-too-large": Advice(
        "The training would need more memory than a job may have.",
        "Do what the detail says, or use a machine with more memory.",
    ),
    "not-found": Advice(
        "There is nothing of that name or id, or it was deleted.",
        "List what there is, as by GET /v1/models; names are case-sensitive.",
    ),
    "insufficient-storage": Advice(
        "The disk or bucket of the store is full.",
        "Delete datasets that are not needed, or make room; then send it again.",
    ),
    "quota-exceeded": Advice(
        "The store holds as much as the settings allow.",
        "Delete datasets that are not needed, or have the setting raised.",
    ),
    "damaged": Advice(
        "A stored file is not what was stored.",
        "Restore the file that the detail names from a backup (docs/runbook.md).",
    ),
    "out-of-memory": Advice(
        "The worker has too little memory for the job.", "Train on fewer documents, or use a machine with more memory."
    ),
    "internal": Advice(
        "The service failed. What happened is in its log, under the X-Request-ID of the answer.",
        "Report it with that id.",
    ),
    "numerical-error": Advice(
        "The numbers of the documents or options ran out of range in training.", "Scale the features to about 1."
    ),
    "timed-out": Advice(
        "The job took longer than it may.",
        "Train on fewer documents, choose a faster algorithm, or have the limit raised.",
    ),
    "worker-died": Advice(
        "The process of the job died several times, mostly for lack of memory.",
        "Do what the detail says (docs/runbook.md).",
    ),
    "invalid-name": Advice(
        "The name of a model, dataset or alias has a character that names may not have.",
        "Use letters, digits, '.', '_', '-'.",
    ),
    "idempotency-conflict": Advice(
        "The Idempotency-Key was used for another request.",
        "Use a new key for a new request, the same for a repetition.",
    ),
    "limit-exceeded": Advice(
        "The request has more than this installation takes.",
        "Send less, in parts if that is possible, or have the limit raised.",
    ),
    "conflict": Advice(
        "The present state forbids it: something is in use, or a job has not ended.",
        "The detail says what to wait for, or what to end.",
    ),
    "unavailable": Advice("The store or Redis does not answer.", _AGAIN),
    "unauthenticated": Advice(
        "A valid key is required.",
        "Send one as Authorization: Bearer hm_…; an operator makes it by `halfmoon keys create`.",
    ),
    "forbidden": Advice("The key is valid, but not for this call.", "Use a key with a scope that the detail names."),
    "cross-site": Advice(
        "A page of another site made a browser send this, and no key protects the gateway.",
        "Allow its origin by HALFMOON_CORS_ORIGINS, or call the gateway from a program.",
    ),
    "misdirected": Advice(
        "The gateway serves its own machine alone, under the name localhost.",
        "Call it so, or see HALFMOON_ACCESS in docs/running.md.",
    ),
    "not-acceptable": Advice(
        "The answer does not exist in a media type of Accept.", "Send an Accept that the detail names, or none."
    ),
    "too-many": Advice("A limit on what is done or held at a time is reached.", _AGAIN),
    "too-slow": Advice(
        "The body did not come in time.",
        "Send it faster, or have body_idle_timeout_seconds and min_body_bytes_per_second changed.",
    ),
    "invalid-request": Advice(
        "A field of the body or a query parameter is not valid; the detail names it.", "/docs describes every call."
    ),
    "unsupported-media-type": Advice(
        "The body is of a type or an encoding that is not read.",
        "The detail says what to send; docs/documents.md has all.",
    ),
    "method-not-allowed": Advice(
        "The address exists, but not for this method.", "The header Allow has those that are possible."
    ),
    "bad-request": Advice("The request is not valid HTTP.", "/docs describes every call."),
}
"""Advice by type of problem."""


def page_of(problem_type: ProblemType) -> str:
    """The page of a type, as HTML."""
    advice = ADVICE[problem_type.type]
    title = escape(problem_type.title)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1><p>Type: '
        f"/problems/{problem_type.type}. "
        f"Status: {problem_type.status}.</p><h2>Cause</h2><p>{escape(advice.cause)}</p><h2>What "
        f"helps</h2><p>{escape(advice.remedy)}</p></html>\n"
    )


def text_of(problem_type: ProblemType) -> str:
    """The page of a type, as plain text."""
    advice = ADVICE[problem_type.type]
    return f"{problem_type.title} ({problem_type.status})\n\nCause: {advice.cause}\nWhat helps: {advice.remedy}\n"
