"""Examples of answers for the contract, from one session: six texts, a model of two classes, a prediction."""

from typing import Any

_DATASET, _JOB, _SHA256 = (
    "ds-06gvsvslg1f8f87i3baha1fh",
    "job-06gvsvslj3fmcein24cnlbca",
    "188333f6f0c245f6391aeff2d012c924f228e714e0be5b389a080b59b8e8e8a1",
)
_OPTIONS = {"positive_fraction": "estimate", "class_fractions": None, "labels_drawn": "unknown", "tolerance": 1e-6}
_TEXT = {"min_documents": 2, "ngrams": 2, "max_terms": 500000}
_POSTED, _STARTED, _ENDED = "2026-11-21T14:25:36.664449Z", "2026-11-21T14:25:36.697226Z", "2026-11-21T14:25:36.846876Z"

_COMPARISON = {
    "takes_over": True,
    "why": "the new version takes over without a comparison: the model has no other",
    "against": None,
    "labels": 0,
    "gained": 0,
    "lost": 0,
    "p_value": None,
}

EXAMPLES: dict[str, dict[str, Any]] = {
    "Dataset": {
        "id": _DATASET,
        "name": "news",
        "n_documents": 6,
        "n_labeled": 2,
        "label_kind": "single",
        "kind": "text",
        "n_features": None,
        "n_nonzeros": None,
        "parts": [],
        "classes": {"politics": 1, "sport": 1},
        "voters": {},
        "drawn": {"random": 2},
        "fields": [],
        "sha256": _SHA256,
        "created_at": "2026-11-21T14:25:36.648476Z",
        "warnings": ["class 'politics' has one labeled document", "class 'sport' has one labeled document"],
        "archived": False,
        "guidelines": "",
        "shares": {},
        "overlap": 0.0,
    },
    "Job": {
        "id": _JOB,
        "state": "succeeded",
        "algorithm": "auto",
        "options": _OPTIONS,
        "seed": 0,
        "text": _TEXT,
        "dataset": _DATASET,
        "start_from": None,
        "encoder": None,
        "nested": False,
        "other": None,
        "annotations": None,
        "publish": "if_better",
        "model": {"name": "news", "version": 1},
        "model_name": "news",
        "progress": {"fraction": 1.0, "phase": "tsvm, stage 18 of 18", "iteration": 1, "objective": 0.0019},
        "attempt": 1,
        "created_at": _POSTED,
        "started_at": _STARTED,
        "finished_at": _ENDED,
        "status": "converged",
        "objective": 0.0019,
        "warnings": [],
        "report": {
            "chosen": {"algorithm": "tsvm", "lambda": 0.001, "why": "…"},
            "class_fractions": {"politics": 0.497, "sport": 0.503},
            "engine": "memory",
        },
        "comparison": _COMPARISON,
        "error": None,
    },
    "Version": {
        "name": "news",
        "label_kind": "single",
        "version": 1,
        "job": _JOB,
        "dataset": _DATASET,
        "algorithm": "auto",
        "options": _OPTIONS,
        "classes": ["politics", "sport"],
        "kind": "text",
        "text": _TEXT,
        "n_features": 21,
        "facts": {"family": "linear", "n_seen_features": 21, "bytes": 596, "n_terms": 21, "n_words": 13},
        "objective": 0.0019,
        "status": "converged",
        "takes_over": True,
        "comparison": _COMPARISON,
        "held_out": None,
        "annotations": None,
        "confidence": "low",
        "created_at": _ENDED,
    },
    "Prediction": {
        "model": "news",
        "version": 1,
        "classes": ["politics", "sport"],
        "ids": ["d5", "d6"],
        "labels": ["sport", "politics"],
        "scores": [[0.465], [-0.514]],
        "probabilities": [[0.288, 0.712], [0.741, 0.259]],
        "warnings": ["1 of 7 words are new to the model; they count as zero"],
    },
    "DocumentLabels": {"id": "d4", "labels": ["grain", "wheat"], "probabilities": {"grain": 0.91, "wheat": 0.74}},
    "LabeledDocument": {"id": "d3", "label": "sport", "score": 1.102, "probability": 0.899},
    "Problem": {
        "type": "/problems/invalid-documents",
        "title": "The documents cannot be used",
        "status": 422,
        "detail": "document d2: label: line 2: must be a number or a text, not true or false; a label is a text or "
        "an integer",
        "errors": [
            {"document": "d2", "field": "label", "detail": "line 2: must be a number or a text, not true or false"}
        ],
    },
}
"""Examples by the name of their schema."""
