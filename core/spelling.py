"""The name that was probably meant, for errors about names that are not known."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_LONGEST = 64
"""Characters of a name up to which similar names are searched: the search is quadratic in them."""

_MOST = 1000
"""Known names among which similar ones are searched: a search in the names of a table may not take seconds."""

_ALIKE = 0.7
"""Least similarity, as difflib has it: 'lable' and 'label' have .8, 'text' and 'ticket' .6."""


_SYNONYMS = {
    "text": ("body", "content", "sentence", "message", "document", "review", "utterance"),
    "label": ("category", "class", "class_name", "sentiment", "tag", "target", "topic"),
    "labels": ("y", "target", "targets", "classes"),
    "vector": ("embedding", "embeddings"),
    "lambda": ("c", "alpha", "regularization"),
    "max_iterations": ("max_iter", "epochs", "n_iter"),
    "tolerance": ("tol", "eps", "epsilon"),
    "seed": ("random_state", "random_seed"),
    "algorithm": ("algo", "classifier", "method"),
    "options": ("params", "parameters", "hyperparameters"),
}
"""What other tools call a thing, in lower case."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'label'?`` if a known name is similar, or has this synonym in other tools, else empty."""
    lower = {each.lower(): each for each in known}
    if name.lower() not in lower:
        for each, synonyms in _SYNONYMS.items():
            if each in lower and name.lower() in synonyms:
                return f"; did you mean {each!r}?"
    similar = get_close_matches(name.lower(), islice(lower, _MOST), 1, _ALIKE) if len(name) <= _LONGEST else []
    return f"; did you mean {lower[similar[0]]!r}?" if similar else ""
