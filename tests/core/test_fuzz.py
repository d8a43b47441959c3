"""Random tiny problems through the front door: finite results that keep their promises, or an error by name."""

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from core.errors import HalfmoonError, InvalidOption, UnknownAlgorithm
from core.models.io import read_model
from core.options.auto import AutoOptions
from core.options.linear import AnnealingOptions, Cuts3vmOptions, SvmOptions, TsvmOptions
from core.options.relaxation import CtsvmOptions
from core.options.subspace import GradientTsvmOptions, LaplacianSvmOptions
from core.problem import Status
from core.registry import ALGORITHMS, check_options
from core.train import TrainingTask, train
from tests.core.problems import rows_of
from tests.core.tiny_problems import Tiny, tiny

POSITIVE = st.floats(1e-12, 1e9) | st.sampled_from([1e-12, 1e-3, 1.0, 1e9, 1e-300, 1e300, 5e-324])
OPTIONS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "svm": st.fixed_dictionaries(
        {}, optional={"lambda": POSITIVE, "tolerance": st.floats(1e-12, 1), "max_iterations": st.integers(1, 50)}
    ),
    "tsvm": st.fixed_dictionaries(
        {},
        optional={
            "lambda": POSITIVE,
            "lambda_u": POSITIVE,
            "positive_fraction": st.floats(0, 1),
            "max_switches": st.none() | st.integers(1, 3),
            "max_iterations": st.integers(1, 50),
        },
    ),
    "da": st.fixed_dictionaries(
        {},
        optional={
            "lambda": POSITIVE,
            "lambda_u": POSITIVE,
            "positive_fraction": st.floats(0, 1),
            "temperature": POSITIVE,
            "cooling": st.floats(1.1, 100) | st.just(1e300),
            "fixed_temperature": st.none() | POSITIVE,
        },
    ),
    "cuts3vm": st.fixed_dictionaries(
        {"max_iterations": st.integers(1, 50)},
        optional={
            "C": POSITIVE,
            "C_u": st.none() | POSITIVE,
            "epsilon": st.none() | POSITIVE,
            "positive_fraction": st.floats(0, 1),
            "start": st.sampled_from(["supervised", "random"]),
            "restarts": st.integers(1, 3),
        },
    ),
    "ctsvm": st.fixed_dictionaries(
        {},
        optional={
            "C": POSITIVE,
            "C_u": st.none() | POSITIVE,
            "hard_margin": st.booleans(),
            "epsilon": st.none() | st.floats(1e-6, 1e6),
            "regularisation": st.floats(1e-6, 1e6),
            "positive_fraction": st.floats(0, 1),
            "kernel": st.sampled_from(["linear", "rbf", "poly"]),
        },
    ),
    "gradient_tsvm": st.fixed_dictionaries(
        {"kernel": st.sampled_from(["linear", "rbf"])},
        optional={
            "lambda": POSITIVE,
            "lambda_u": POSITIVE,
            "positive_fraction": st.floats(0, 1),
            "most_columns": st.integers(1, 3),
        },
    ),
    "laplacian_svm": st.fixed_dictionaries(
        {"kernel": st.sampled_from(["linear", "rbf"])},
        optional={
            "lambda": POSITIVE,
            "lambda_graph": POSITIVE,
            "neighbours": st.integers(1, 10),
            "power": st.integers(1, 10),
        },
    ),
    "auto": st.fixed_dictionaries({}, optional={"positive_fraction": st.floats(0, 1), "tolerance": st.floats(1e-9, 1)}),
}


WEIGHTS = ("lambda", "lambda_u", "lambda_graph", "temperature", "fixed_temperature", "C", "C_u", "epsilon")


def refusable(problem: Tiny) -> bool:
    """Whether there is a reason to refuse a problem."""
    n_classes, extreme = len(set(problem.class_indices) - {-1}), [problem.options.get(name) for name in WEIGHTS]
    return (
        n_classes < 2
        or (n_classes > 2 and "positive_fraction" in problem.options)
        or any(value is not None and not 1e-12 <= value <= 1e9 for value in extreme)
    )


@settings(
    max_examples=150,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(tiny(OPTIONS))
def test_finite_results_or_a_named_error(problem: Tiny) -> None:
    rows, class_indices = rows_of(np.array(problem.dense)), np.array(problem.class_indices, np.int32)
    classes = ["a", "b", "c"]
    if problem.algorithm == "auto" and len(set(problem.class_indices) - {-1}) == 1 and -1 in problem.class_indices:
        # labels of one class are told from the rest, or refused with words where there are too few
        with suppress(HalfmoonError):
            alone = train(TrainingTask(rows, class_indices, classes, problem.algorithm, problem.options))
            assert len(alone.model.classes) == 2
            assert np.isfinite(alone.model.scores(rows)).all()
        return
    if refusable(problem):
        with pytest.raises(HalfmoonError):
            train(TrainingTask(rows, class_indices, classes, problem.algorithm, problem.options))
        return
    training = train(TrainingTask(rows, class_indices, classes, problem.algorithm, problem.options))
    scores = training.model.scores(rows)
    n_classes = len(set(problem.class_indices) - {-1})
    assert scores.shape == (len(class_indices), 1 if n_classes == 2 else n_classes)
    assert training.scores.shape == (int((class_indices < 0).sum()), scores.shape[1])
    assert np.isfinite(scores).all()
    assert np.isfinite(training.scores).all()
    assert np.isfinite(training.objective)
    assert training.status in (Status.CONVERGED, Status.ITERATION_LIMIT)
    arrays, meta = training.model.to_arrays()
    np.testing.assert_array_equal(read_model(arrays, meta).scores(rows), scores)


JSON = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=3)
    | st.lists(st.floats() | st.none(), max_size=2)
)
TAKEN = (
    SvmOptions,
    TsvmOptions,
    AnnealingOptions,
    Cuts3vmOptions,
    CtsvmOptions,
    GradientTsvmOptions,
    LaplacianSvmOptions,
    AutoOptions,
)
NAMES = sorted({info.alias or name for options in TAKEN for name, info in options.model_fields.items()})


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from([*OPTIONS, "", "TSVM"]),
    st.dictionaries(
        st.sampled_from(NAMES) | st.text(min_size=1, max_size=5),
        JSON | st.dictionaries(st.text(max_size=2), JSON),
        max_size=3,
    ),
)
def test_any_json_as_options_is_taken_or_refused_by_name(algorithm: str, options: dict[str, Any]) -> None:
    try:
        parsed = check_options(algorithm, options, ["a", "b"])
    except InvalidOption as refusal:
        named = refusal.field
    except UnknownAlgorithm:
        named = algorithm
    else:
        taken = parsed.model_dump(by_alias=True)
        assert {name: taken[name] for name in options} == options
        return
    assert (
        algorithm not in ALGORITHMS
        or any(named == name or named.startswith(f"{name}.") for name in options)
        or "class_fractions" in options
    )
