"""Removing what is below a prefix but for some of it."""

from collections.abc import Set

from workers.store import Store


def prune(store: Store, prefix: str, kept: Set[str]) -> None:
    """Remove everything at and below a prefix except the keys in ``kept``."""
    if prefix in kept:
        return
    if not any(key.startswith(f"{prefix}/") for key in kept):
        store.delete(prefix)
        return
    for name in store.children(prefix):
        prune(store, f"{prefix}/{name}", kept)
