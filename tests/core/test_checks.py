"""Faults of a request are found before training, and name its field."""

from typing import Any

import pytest

from core.errors import HalfmoonError, InvalidDocuments, InvalidOption, UnknownAlgorithm
from core.options.base import RequestedFractions
from core.options.linear import AnnealingOptions, TsvmOptions
from core.registry import ALGORITHMS, OFFERED, check_options
from tests.there import there

THREE = ["a", "b", "c"]


@pytest.mark.parametrize("wrong", [0, -1.0, 5e-324, 1e300, float("nan"), float("inf"), "1", None, True, [1]], ids=repr)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_lambda(name: str, wrong: Any) -> None:
    with pytest.raises(InvalidOption) as caught:
        check_options(name, {"lambda": wrong}, THREE)
    assert caught.value.field == "lambda"
    assert str(caught.value).startswith("lambda: ")


@pytest.mark.parametrize(
    ("name", "field", "wrong"),
    [
        ("svm", "tolerance", 0),
        ("svm", "tolerance", 1.5),
        ("svm", "max_iterations", 0),
        ("svm", "max_iterations", 2.5),
        ("svm", "lambda_u", 1.0),
        ("svm", "positive_fraction", 0.5),
        ("svm", "gamma", 1.0),
        ("tsvm", "lambda_u", 0.0),
        ("tsvm", "lambda_u", float("nan")),
        ("tsvm", "lambda_u", 1e10),
        ("tsvm", "lambda_u", 1e-13),
        ("da", "temperature", 1e-300),
        ("tsvm", "max_switches", 0),
        ("tsvm", "max_switches", 1.0),
        ("tsvm", "max_switches", "all"),
        ("tsvm", "temperature", 1.0),
        ("tsvm", "positive_fraction", 1.01),
        ("tsvm", "positive_fraction", -0.01),
        ("tsvm", "positive_fraction", float("nan")),
        ("da", "temperature", 0.0),
        ("da", "cooling", 1.0),
        ("da", "cooling", float("inf")),
        ("da", "fixed_temperature", -1.0),
        ("da", "max_switches", 3),
    ],
)
def test_each_wrong_option_is_named(name: str, field: str, wrong: Any) -> None:
    with pytest.raises(InvalidOption) as caught:
        check_options(name, {field: wrong}, ["a", "b"])
    assert caught.value.field == field


def test_an_unknown_option_is_told_the_known_ones() -> None:
    with pytest.raises(InvalidOption, match="known are lambda, max_iterations, probabilities, tolerance"):
        check_options("svm", {"lamda": 1.0}, THREE)


@pytest.mark.parametrize(
    ("classes", "given", "field"),
    [
        (THREE, {"positive_fraction": 0.5}, "positive_fraction"),
        (["a", "b"], {"positive_fraction": 0.5, "class_fractions": {"a": 0.5, "b": 0.5}}, "class_fractions"),
        (THREE, {"class_fractions": {"a": 0.5, "b": 0.5}}, "class_fractions"),
        (THREE, {"class_fractions": {"a": 0.5, "b": 0.25, "d": 0.25}}, "class_fractions"),
        (THREE, {"class_fractions": {"a": 0.5, "b": 0.25, "c": 0.2}}, "class_fractions"),
        (THREE, {"class_fractions": {"a": 0.5, "b": 1.5, "c": -1.0}}, "class_fractions.b"),
        (THREE, {"class_fractions": {"a": 0.5, "b": "x", "c": 0.0}}, "class_fractions.b"),
        (THREE, {"class_fractions": [0.5, 0.25, 0.25]}, "class_fractions"),
    ],
)
@pytest.mark.parametrize("name", ["tsvm", "da"])
def test_fractions_that_do_not_fit_the_classes(
    name: str, classes: list[str], given: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidOption) as caught:
        check_options(name, given, classes)
    assert caught.value.field == field


@pytest.mark.parametrize(("classes", "said"), [([], "no document"), (["a"], "'a'"), ([7], "7")])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_fewer_than_two_classes(name: str, classes: list[Any], said: str) -> None:
    with pytest.raises(InvalidDocuments, match=said):
        check_options(name, {}, classes)


def test_an_unknown_algorithm_is_told_the_known_ones() -> None:
    with pytest.raises(UnknownAlgorithm) as caught:
        check_options("tsmv", {}, THREE)
    assert str(caught.value).endswith(f"known are {', '.join(OFFERED)}")
    assert isinstance(caught.value, HalfmoonError)


def test_what_is_right_comes_back_parsed() -> None:
    options = check_options(
        "tsvm", {"lambda": 1, "lambda_u": 0.5, "max_switches": None, "positive_fraction": 0}, ["a", "b"]
    )
    assert options == TsvmOptions(lambda_=1.0, lambda_u=0.5, positive_fraction=0.0)
    assert check_options("da", {}, THREE) == AnnealingOptions()


def test_what_is_said_of_fractions() -> None:
    fractions: dict[str, float | list[float]] = {"3": 0.5, "1": 0.2, "2": 0.3}
    assert TsvmOptions(class_fractions=fractions).requested_fractions([1, 2, 3]) == RequestedFractions(
        "given", {"1": 0.2, "2": 0.3, "3": 0.5}
    )
    assert TsvmOptions().requested_fractions([1, 2, 3]) == RequestedFractions("estimate")
    assert TsvmOptions(positive_fraction="labeled").requested_fractions([1, 2, 3]) == RequestedFractions("labeled")
    assert TsvmOptions(class_fractions="labeled").requested_fractions([1, 2]) == RequestedFractions("labeled")
    assert TsvmOptions(positive_fraction=0.4).requested_fractions([1, 2]) == RequestedFractions(
        "given", {"1": 0.6, "2": 0.4}
    )


@pytest.mark.parametrize("name", ["auto", "tsvm", "da", "cccp_tsvm"])
def test_fractions_are_estimated_unless_something_else_is_said(name: str) -> None:
    options = check_options(name, {}, THREE)
    requested = there(options.requested_fractions(THREE))
    assert requested.source == "estimate"
    stored = options.model_dump(mode="json", by_alias=True)
    assert check_options(name, stored, THREE) == options


def test_fractions_of_some_classes_and_ranges_bound_an_estimate() -> None:
    bounds = {"a": (0.2, 0.2), "b": (0.0, 1.0), "c": (0.3, 0.5)}
    even: dict[str, float | list[float]] = {"a": 0.4, "b": 0.4, "c": 0.2}
    options = check_options("tsvm", {"class_fractions": {"a": 0.2, "c": [0.3, 0.5]}}, THREE)
    assert options.requested_fractions(THREE) == RequestedFractions("estimate", bounds=bounds)
    assert options.estimated
    assert not check_options("tsvm", {"class_fractions": even}, THREE).estimated
    assert check_options("tsvm", options.model_dump(mode="json", by_alias=True), THREE) == options
    assert check_options("auto", {"class_fractions": even | {"a": [0.4, 0.4]}}, THREE).requested_fractions(
        THREE
    ) == RequestedFractions("given", {"a": 0.4, "b": 0.4, "c": 0.2})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"d": 0.5}, "must name classes"),
        ({"a": [0.5, 0.2]}, "lower end"),
        ({"a": 0.7, "b": 0.5}, "sum to 1"),
        ({"a": [0.6, 0.7], "b": [0.5, 0.6]}, "sum to 1"),
        ({"a": 0.2, "b": [0.1, 0.2], "c": [0.1, 0.2]}, "sum to 1"),
        ({"a": [0.2]}, "class_fractions"),
    ],
)
def test_bounds_that_no_fractions_keep_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        check_options("auto", {"class_fractions": given}, THREE)
