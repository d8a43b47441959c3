"""Shards lie with as many workers as there are, and move only where they must."""

from workers.cluster.workforce import placement


def test_each_worker_gets_as_many_as_it_has_threads() -> None:
    assert placement([""] * 4, {"a": 1, "b": 2, "c": 1}) == ["b", "a", "b", "c"]
    assert sorted(placement([""] * 5, {"a": 1, "b": 1})) == ["a", "a", "a", "b", "b"]
    assert placement([""] * 2, {"a": 1, "b": 1, "c": 1}) == ["a", "b"]


def test_what_a_worker_had_that_has_gone_is_shared_and_comes_back_to_the_one_that_takes_its_place() -> None:
    held = ["a", "b", "c"]
    assert placement(held, {"a": 1, "b": 1, "c": 1, "new": 1}) == held
    without = placement(held, {"a": 1, "c": 1})
    assert without == ["a", "a", "c"]
    assert placement(without, {"a": 1, "c": 1, "new": 1}) == ["a", "new", "c"]
    assert placement(held, {"new": 1}) == ["new"] * 3
