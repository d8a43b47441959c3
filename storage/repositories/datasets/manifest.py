"""Digest of the content and warnings, for the manifest of a dataset."""

import hashlib
import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from storage.records import DatasetPart, File, Label

_MISSING = ("", "none", "nan", "null", "n/a", "na", "unknown", "unlabeled", "abstain", "?")
"""Labels in lower case by which tables and programs write that there is none."""


def content_digest(
    n_features: int | None,
    parts: Sequence[DatasetPart],
    classes: Sequence[tuple[Label, int]],
    files: Mapping[str, File],
    fields: Sequence[str] = (),
    voters: Sequence[str] = (),
    voted: Sequence[Label] = (),
) -> str:
    """SHA-256 of the content of a dataset.

    Equal contents have equal files, so the digest is made of those of the files, in a fixed order.
    """
    digests = {name: files[name].sha256 for name in sorted(files)}
    content: dict[str, object] = {
        "n_features": n_features,
        "classes": [label for label, _ in classes],
        "files": digests,
    }
    if parts:
        content["parts"] = {part.name: part.n_features for part in parts}
    optional = {"fields": fields, "voters": voters, "voted": voted}
    content |= {name: list(values) for name, values in optional.items() if values}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def document_warnings(n_empty: int, n_unseen: int | None) -> list[str]:
    """Warnings about the rows; ``n_unseen`` is None where it was not counted."""
    warnings = []
    if n_empty:
        warnings.append(f"{_count(n_empty, 'document')} without any nonzero value")
    if n_unseen:
        warnings.append(f"{_count(n_unseen, 'feature')} that no document has")
    return warnings


def text_warnings(n_empty: int, n_unspaced: int = 0) -> list[str]:
    """Warnings about texts; ``n_unspaced`` is the number of those with clauses in place of words."""
    warnings = [f"{_count(n_empty, 'document')} without any text"] if n_empty else []
    if n_unspaced:
        advice = "put spaces between words (as by jieba or MeCab), or terms will be whole clauses"
        warnings.append(f"{_count(n_unspaced, 'text')} in Chinese or Japanese without spaces between words: {advice}")
    return warnings


def class_warnings(classes: Sequence[tuple[Label, int]]) -> list[str]:
    """Warnings about the labels, and about classes that are only voted for."""
    doubtful = _doubtful([label for label, _ in classes if isinstance(label, str)])
    if not any(count for _, count in classes):
        return ["no document is labeled", *doubtful]
    single = (
        [f"all labels are {classes[0][0]!r}; a training looks for it among the unlabeled documents"]
        if len(classes) == 1
        else []
    )
    few = [f"class {label!r} has {('no', 'one')[count]} labeled document" for label, count in classes if count < 2]
    more = [f"and {len(few) - 20} more classes with at most one labeled document"] if len(few) > 20 else []
    return [*single, *doubtful, *few[:20], *more]


def _doubtful(labels: Sequence[str]) -> Iterator[str]:
    """Warnings about labels that are hardly meant as they are."""
    missing = [label for label in labels if label.strip().lower() in _MISSING]
    if missing:
        yield (
            f"labels such as {missing[0]!r} look like missing values; an unlabeled document has no label, or null, and "
            "who abstains no vote"
        )
    alike: dict[str, str] = {}
    for label in labels:
        other = alike.setdefault(unicodedata.normalize("NFKC", label).strip(" \t\r\n\u200b\ufeff").casefold(), label)
        if other != label:
            how = "case or spaces" if other.strip().lower() == label.strip().lower() else "the coding of characters"
            yield f"labels {other!r} and {label!r} differ in {how} alone, and are two classes"
            return


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
