"""Models: versions that never change, numbers that never come back, aliases that move."""

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from storage.errors import Conflict, InvalidName, NotFound
from storage.names import new_id
from storage.records import Comparison, Publication
from storage.repositories.jobs import Jobs
from storage.repositories.models import Models
from storage.store import Store
from tests.calls import meanwhile, noted
from tests.stores import later, make_dataset, submit, success
from tests.there import there


def publish(store: Store, name: str = "news") -> str:
    id = submit(store, model=name)
    Jobs(store).record_outcome(id, success(store))
    Jobs(store).publish(id)
    return id


@pytest.fixture
def published(store: Store) -> str:
    """The id of the job that made the first version."""
    return publish(store)


def test_versions_are_in_the_order_of_their_numbers(store: Store, models: Models) -> None:
    for _ in range(11):
        publish(store)
    assert models.resolve("news").number == 11
    assert [version.number for version in models.versions("news")] == list(range(1, 12))


def test_the_newest_of_any_number_of_versions_is_found_without_listing_them(
    store: Store, monkeypatch: pytest.MonkeyPatch, models: Models
) -> None:
    for _ in range(3):
        publish(store)
    assert models.resolve("news").number == 3
    publish(store)
    with monkeypatch.context() as patch:
        listed = noted(patch, store, "children", lambda prefix: prefix)
        assert [models.resolve("news").number for _ in range(3)] == [4, 4, 4]
        assert listed == []
    Models(store).delete_version("news", 4)
    assert models.resolve("news").number == 3
    publish(store)
    assert models.resolve("news").number == 5
    Models(store).delete("news")
    with pytest.raises(NotFound):
        models.resolve("news")


def test_a_version_that_was_deleted_before_a_late_publication_is_its_version(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = submit(store, model="news")
    Jobs(store).record_outcome(id, success(store))

    def publish_and_delete() -> None:
        Jobs(store).publish(id)
        Models(store).delete_version("news", 1)

    meanwhile(monkeypatch, type(store), "local", publish_and_delete)
    assert there(Jobs(store).publish(id)).number == 1


def held_back(store: Store) -> None:
    """Publish a version that does not take over."""
    worse = Comparison(takes_over=False, why="it is worse", against=1, labels=9, lost=9, p_value=0.002)
    id = submit(store)
    Jobs(store).record_outcome(id, success(store).model_copy(update={"comparison": worse}))
    Jobs(store).publish(id)


@pytest.mark.usefixtures("published")
def test_the_name_stands_for_the_newest_version_that_takes_over(store: Store, models: Models) -> None:
    for _ in range(3):
        held_back(store)
    assert (models.resolve("news").number, Models(store).resolve("news").number, models.newest("news")) == (1, 1, 4)
    assert [version.takes_over for version in models.versions("news")] == [True, False, False, False]
    publish(store)
    assert models.resolve("news").number == 5
    held_back(store)
    models.delete_version("news", 5)
    assert models.resolve("news").number == 1
    models.delete_version("news", 1)
    assert models.resolve("news").number == 6, "it is all that is left"
    models.delete_version("news", 6)
    assert (models.resolve("news").number, models.newest("news")) == (4, 4)
    models.delete("news")
    for find in (models.resolve, models.newest):
        with pytest.raises(NotFound):
            find("news")


@pytest.mark.usefixtures("published")
def test_what_is_served_is_found_without_listing_what_is_not(
    store: Store, monkeypatch: pytest.MonkeyPatch, models: Models
) -> None:
    for _ in range(3):
        held_back(store)
    assert models.resolve("news").number == 1
    monkeypatch.setattr(store, "children", lambda prefix: pytest.fail(prefix))
    assert models.resolve("news").number == 1


def test_unknown_things(store: Store, models: Models) -> None:
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


def test_a_deleted_number_is_not_used_again(store: Store, models: Models) -> None:
    first, second = publish(store), publish(store)
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
    assert there(Jobs(store).publish(second)).number == 2
    assert Jobs(store).get(first).version == 1


@pytest.mark.usefixtures("published")
def test_deleting_a_model_frees_nothing_but_its_files(store: Store, models: Models) -> None:
    publish(store, "other")
    models.set_alias("news", "a", 1)
    models.delete("news")
    assert models.names() == (["other"], None)
    for reference in ("news", "news@a"):
        with pytest.raises(NotFound):
            models.resolve(reference)
    publish(store)
    assert models.resolve("news").number == 2
    assert models.aliases("news") == {}


def test_a_model_that_a_job_starts_from_stays_whole(store: Store) -> None:
    for _ in range(3):
        publish(store)
    models, jobs = Models(store), Jobs(store)
    models.set_alias("news", "live", 2)
    id = submit(store, model="other", start=Publication(name="news", version=2))
    with pytest.raises(Conflict, match=f"version 2 of model 'news' is needed by job '{id}', which is queued"):
        models.delete("news", jobs.starting_from)
    assert [version.number for version in models.versions("news")] == [1, 2, 3]
    assert all(store.exists(file.key) for version in models.versions("news") for file in version.files.values())
    jobs.cancel(id)
    models.delete("news", jobs.starting_from)
    assert models.names() == ([], None)


@pytest.mark.parametrize("step", range(1, 40))
def test_a_job_that_comes_while_a_model_is_deleted_never_starts_from_nothing(
    store: Store, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        publish(store)
    dataset, models, jobs, made = make_dataset(store).id, Models(store), Jobs(store), list[str]()
    overtaking(
        store,
        step,
        lambda: made.append(submit(store, dataset=dataset, model="other", start=Publication(name="news", version=2))),
        monkeypatch,
    )
    with suppress(Conflict):
        models.delete("news", jobs.starting_from)
    monkeypatch.undo()
    waiting = {job.request.id for job in jobs.unfinished()}
    assert waiting <= set(made)
    assert bool(waiting) == (not models.deleted("news", 2)) or not made
    if waiting:
        assert [version.number for version in models.versions("news")] == [1, 2]
        assert store.exists(models.version("news", 2).files["model"].key)


def overtaking(store: Store, step: int, other: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Call ``other`` once, just before the ``step``-th operation on the store; the list counts the operations."""
    count: list[int] = []

    def counted(name: str) -> Any:
        original = getattr(type(store), name)

        def act(self: Store, *arguments: Any) -> Any:
            count.append(1)
            if len(count) == step:
                with suppress(NotFound, Conflict):
                    other()
            return original(self, *arguments)

        return act

    for name in ("create", "replace", "delete", "children", "exists", "read"):
        monkeypatch.setattr(type(store), name, counted(name))
    return count


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize("first", ["alias", "deletion"])
@pytest.mark.parametrize("step", range(1, 17))
def test_no_alias_ever_points_to_a_deleted_version(
    store: Store, monkeypatch: pytest.MonkeyPatch, first: str, step: int
) -> None:
    publish(store)
    acts: dict[str, Callable[[], Any]] = {
        "alias": lambda: Models(store).set_alias("news", "live", 1),
        "deletion": lambda: Models(store).delete_version("news", 1),
    }
    other = acts[{"alias": "deletion", "deletion": "alias"}[first]]
    Models(store).set_alias("news", "live", 2)
    files = Models(store).version("news", 1).files.values()
    with monkeypatch.context() as patch, suppress(NotFound, Conflict):
        overtaking(store, step, other, patch)
        acts[first]()
    number = Models(store).aliases("news")["live"]
    assert Models(store).resolve("news@live").number == number
    assert all(store.exists(file.key) for file in files) is not Models(store).deleted("news", 1), (
        "a version is whole or gone"
    )
    assert not (number == 1 and Models(store).deleted("news", 1))
    assert store.children("models/news/aliasing") == []


@pytest.mark.usefixtures("published")
def test_two_deletions_of_a_version_while_an_alias_is_set(
    store: Store, monkeypatch: pytest.MonkeyPatch, models: Models
) -> None:

    def delete_and_alias() -> None:
        with pytest.raises(NotFound):
            Models(store).delete_version("news", 1)
        store.create("models/news/aliasing/1.aliasing-" + new_id("x").partition("-")[2], b"")

    meanwhile(monkeypatch, Models, "_mark_deleted", delete_and_alias, after=True)
    with pytest.raises(Conflict, match="being set"):
        models.delete_version("news", 1)
    assert all(store.exists(file.key) for file in models.version("news", 1).files.values())


@pytest.mark.usefixtures("published")
def test_a_clock_that_is_an_hour_off_makes_no_mark_abandoned(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    models, now = Models(store), time.time() + 3600
    files, mark = models.version("news", 1).files.values(), f"models/news/aliasing/1.{new_id('aliasing')}"
    store.create(mark, b"")
    with monkeypatch.context() as patch:
        patch.setattr("storage.names.time", SimpleNamespace(time=lambda: now, time_ns=lambda: int(now * 1e9)))
        patch.setattr(
            "storage.repositories.models.datetime", SimpleNamespace(now=lambda zone: datetime.fromtimestamp(now, zone))
        )
        with pytest.raises(Conflict, match="being set"):
            models.delete_version("news", 1)
        models.remove_abandoned()
    assert store.exists(mark)
    assert all(store.exists(file.key) for file in files)
    with later(monkeypatch, 61):
        models.delete_version("news", 1)
    assert not any(store.exists(file.key) for file in files)


@pytest.mark.usefixtures("published")
def test_an_alias_that_goes_meanwhile_is_left_out(
    store: Store, monkeypatch: pytest.MonkeyPatch, models: Models
) -> None:
    for alias in ("a", "b"):
        models.set_alias("news", alias, 1)
    children = store.children
    with monkeypatch.context() as patch:
        patch.setattr(store, "children", lambda prefix: [*children(prefix), "gone.json"])
        assert models.aliases("news") == {"a": 1, "b": 1}


@pytest.mark.usefixtures("published")
def test_files_of_a_deletion_cut_short_are_removed_later(
    store: Store, monkeypatch: pytest.MonkeyPatch, models: Models
) -> None:
    files = models.version("news", 1).files.values()
    with monkeypatch.context() as patch:
        patch.setattr(Models, "_delete_files", lambda *_: None)
        models.delete_version("news", 1)
    other = Models(store)
    other.remove_abandoned()
    assert all(store.exists(file.key) for file in files), "it might still be undone"
    with later(monkeypatch, 61):
        other.remove_abandoned()
    assert not any(store.exists(file.key) for file in files)
