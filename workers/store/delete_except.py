"""Deletion of everything below a prefix, except some keys."""

from collections.abc import Set

from workers.store import Store


def delete_except(store: Store, prefix: str, keep: Set[str]) -> None:
    """Delete everything at and below a prefix except the keys in ``keep``."""
    if prefix in keep:
        return
    if not any(key.startswith(f"{prefix}/") for key in keep):
        store.delete(prefix)
        return
    for name in store.children(prefix):
        delete_except(store, f"{prefix}/{name}", keep)
