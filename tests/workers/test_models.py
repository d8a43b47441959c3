"""Models: versions that never change, numbers that never come back, aliases that move."""

import pytest

from tests.workers.conftest import submit, success
from workers.errors import Conflict, InvalidName, NotFound
from workers.jobs import Jobs
from workers.models import Models
from workers.storage import Store


def publish(store: Store, name: str = "news") -> str:
    id = submit(store, model=name)
    Jobs(store).finish(id, success(store))
    Jobs(store).publish(id)
    return id


def test_references(store: Store) -> None:
    for _ in range(11):
        publish(store)
    models = Models(store)
    models.set_alias("news", "champion", 2)
    assert models.resolve("news").number == 11
    assert models.resolve("news@champion").number == 2
    models.set_alias("news", "champion", 3)
    assert Models(store).resolve("news@champion").number == 3
    assert models.aliases("news") == {"champion": 3}
    assert [version.number for version in models.versions("news")] == list(range(1, 12))
    assert models.version("news", 4).number == 4


@pytest.mark.parametrize("reference", ["nothing", "news@nothing", "news@", "@news", "", "../news", "news@../x", "a/b", "n" * 200])
def test_unknown_references(store: Store, reference: str) -> None:
    publish(store)
    with pytest.raises(NotFound):
        Models(store).resolve(reference)


def test_unknown_things(store: Store) -> None:
    models = Models(store)
    for act in (models.versions, models.aliases, models.delete):
        with pytest.raises(NotFound):
            act("news")
    publish(store)
    for number in (0, 2, -1):
        with pytest.raises(NotFound):
            models.version("news", number)
        with pytest.raises(NotFound):
            models.set_alias("news", "a", number)
    with pytest.raises(NotFound):
        models.delete_alias("news", "a")
    with pytest.raises(InvalidName):
        models.set_alias("news", "a/b", 1)


def test_a_deleted_number_is_not_used_again(store: Store) -> None:
    first, second = publish(store), publish(store)
    models = Models(store)
    models.set_alias("news", "champion", 2)
    with pytest.raises(Conflict, match="champion"):
        models.delete_version("news", 2)
    models.delete_alias("news", "champion")
    files = models.version("news", 2).files
    models.delete_version("news", 2)
    assert not any(store.exists(file.key) for file in files.values())
    assert models.resolve("news").number == 1
    with pytest.raises(NotFound):
        models.version("news", 2)
    publish(store)
    assert [version.number for version in models.versions("news")] == [1, 3]
    again = Jobs(store).publish(second)
    assert again is not None
    assert again.number == 2
    assert Jobs(store).get(first).version == 1


def test_deleting_a_model_frees_nothing_but_its_files(store: Store) -> None:
    publish(store)
    publish(store, "other")
    models = Models(store)
    models.set_alias("news", "a", 1)
    models.delete("news")
    assert models.names() == (["other"], None)
    for reference in ("news", "news@a"):
        with pytest.raises(NotFound):
            models.resolve(reference)
    publish(store)
    assert models.resolve("news").number == 2
    assert models.aliases("news") == {}


def test_names_are_paged(store: Store) -> None:
    for name in ("c", "a", "b"):
        publish(store, name)
    models = Models(store)
    assert models.names(limit=2) == (["a", "b"], "b")
    assert models.names(limit=2, cursor="b") == (["c"], None)
