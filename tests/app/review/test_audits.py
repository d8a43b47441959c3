"""Audits over HTTP: drawn, labeled, and their figures of versions."""

import re
from typing import Any

import numpy as np
import pytest

from app.predictions import scoring
from app.review.audits import _forecast
from app.review.schemas import VersionError
from core.models.model import LinearModel
from core.validation.label_calibration import LabelCalibration
from tests.app.conftest import Gateway, annotate, problem_of, publish, summary
from tests.app.review.audited import COUNT, draw, report


@pytest.fixture
def dataset(gateway: Gateway) -> str:
    lines: list[dict[str, Any]] = [{"indices": [0, 1], "values": [1.0, 2 * (k + 0.5) / COUNT]} for k in range(COUNT)]
    dataset = str(gateway.upload([{**lines[0], "label": "no"}, {**lines[1], "label": "yes"}, *lines[2:]])["id"])
    publish(gateway.store, dataset=dataset, calibrated=True)
    return dataset


def truth(id: str) -> str:
    return "no" if int(id) < COUNT // 2 else "yes"


def answer_all(gateway: Gateway, audit: dict[str, Any], wrong: int = 0) -> None:
    """Label an audit by truth but for the first ``wrong`` documents."""
    flipped = {"no": "yes", "yes": "no"}
    labels = [flipped[truth(id)] if k < wrong else truth(id) for k, id in enumerate(audit["documents"])]
    annotate(
        gateway,
        audit["dataset"],
        *({"document": id, "label": label} for id, label in zip(audit["documents"], labels, strict=True)),
    )


def test_a_version_that_is_better_than_the_curve_has_no_forecast() -> None:
    versions = [
        VersionError(
            **{"model": "news", "version": k, "learned": 20 * k, "labels": 100, "held_out": 0, "errors": errors},
            **{"error": errors / 100, "low": 0.0, "high": 1.0, "by_label": None},
        )
        for k, errors in ((1, 20), (2, 3), (3, 18))
    ]
    assert [_forecast(versions[:k]) is None for k in (1, 2, 3)] == [False, True, False]


def test_a_version_scores_an_audit_once(gateway: Gateway, dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often its report is looked at, and whatever labels come meanwhile."""
    audit = draw(gateway, dataset, n=50)
    before = report(gateway, audit)["versions"][0]
    monkeypatch.delattr(scoring, "score_stored")
    answer_all(gateway, audit)
    found = report(gateway, audit)
    assert (before["labels"], found["versions"][0]["labels"], found["versions"][0]["errors"]) == (0, 50, 0)


def test_of_several_labels_each_has_its_error(gateway: Gateway) -> None:
    lines = [{"id": id, "indices": [0, 1], "values": values} for id, values in SEVERAL.items()]
    dataset = str(
        gateway.upload([{"indices": [0], "labels": ["corn"]}, {"indices": [0], "labels": ["ship"]}, *lines])["id"]
    )
    calibration = LabelCalibration(np.ones(2), np.zeros(2), np.full(2, 0.5))
    model = LinearModel(
        ["corn", "ship"], 2, np.arange(2, dtype=np.uint32), np.eye(2), np.zeros(2), calibration=calibration
    )
    publish(gateway.store, dataset=dataset, model=model)
    audit = draw(gateway, dataset)
    right: dict[str, list[str]] = {"both": ["corn", "ship"], "corn": ["corn"], "none": [], "ship": ["corn"]}
    annotate(gateway, dataset, *({"document": id, "labels": labels} for id, labels in right.items()))
    found = report(gateway, audit)
    (version,) = found["versions"]
    assert (version["labels"], version["errors"], found["likeliest"]) == (4, 1, 0.5)
    assert [
        [each[name] for name in ("label", "labels", "applies", "given", "errors")] for each in version["by_label"]
    ] == [
        ["corn", 4, 3, 2, 1],
        ["ship", 4, 1, 2, 1],
    ]
    assert (found["automatic"]["possible"], found["forecast"] is None) == (False, False)
    left_out = {2: [0.9, 0.9], 3: [0.9, np.nan], 4: [0.9, 0.1], 5: [0.1, 0.9]}
    publish(gateway.store, dataset=dataset, model=model, left_out=left_out, annotations=4)
    told = report(gateway, audit)["versions"][0]
    assert (told["labels"], told["held_out"], told["errors"]) == (3, 3, 2)
    assert [(each["label"], each["labels"], each["errors"]) for each in told["by_label"]] == [
        ("corn", 4, 2),
        ("ship", 3, 1),
    ]


SEVERAL = {"both": [1.0, 1.0], "corn": [1.0, -1.0], "none": [-1.0, -1.0], "ship": [-1.0, 1.0]}
"""Documents by the labels that the model gives."""


def test_it_draws_from_what_has_no_label(gateway: Gateway, dataset: str) -> None:
    annotate(gateway, dataset, {"document": "5", "label": "no"}, {"document": "6", "action": "skip"})
    audit = draw(gateway, dataset, n=1000)
    assert sorted(map(int, audit["documents"])) == [2, 3, 4, *range(7, COUNT)]
    assert audit["unlabeled"] == COUNT - 4
    assert draw(gateway, dataset, n=10)["documents"] == draw(gateway, dataset, n=10)["documents"]
    listed = gateway.client.get(f"/v1/datasets/{dataset}/audits").json()["audits"]
    assert listed[-1] == audit
    assert len(listed) == 3


def test_it_says_the_error_with_its_interval(gateway: Gateway, dataset: str) -> None:
    audit = draw(gateway, dataset, n=50)
    before = report(gateway, audit)
    assert before["versions"][0] == {
        **{
            "model": "news",
            "version": 1,
            "learned": 2,
            "labels": 0,
            "held_out": 0,
            "errors": 0,
            "error": None,
            "by_label": None,
        },
        **{"low": 0.0, "high": 1.0},
    }
    assert before["open"] == audit["documents"]
    assert before["forecast"] is None
    answer_all(gateway, audit, wrong=2)
    assert summary(gateway, dataset)["drawn"] == {"random": 50}
    found = report(gateway, audit)
    assert (found["labeled"], found["open"]) == (50, [])
    assert {name: found["versions"][0][name] for name in ("labels", "errors", "error")} == {
        "labels": 50,
        "errors": 2,
        "error": 0.04,
    }
    assert found["versions"][0]["low"] == pytest.approx(0.004881, abs=1e-6)
    assert found["versions"][0]["high"] == pytest.approx(0.137138, abs=1e-6)
    assert found["forecast"]["low"] < found["forecast"]["expected"] < 0.1
    assert re.fullmatch(
        r"20 more labels are likely to bring the error to 2\.\d% \([\d.]+% to [\d.]+%\), by the curve of all versions",
        found["forecast"]["why"],
    )
    assert "72 labels" in found["automatic"]["why"]
    assert not found["automatic"]["possible"]


def test_it_says_what_may_be_labeled_automatically(gateway: Gateway, dataset: str) -> None:
    audit = draw(gateway, dataset, n=100)
    answer_all(gateway, audit)
    found = report(gateway, audit)["automatic"]
    assert (found["possible"], found["documents"], found["at_least"], found["errors"]) == (True, COUNT - 102, None, 0)
    assert report(gateway, audit, precision=0.99)["automatic"]["possible"] is False
    last = draw(gateway, dataset, n=98)
    answer_all(gateway, last, wrong=30)
    assert "of 98 labels of the audit 30 were wrong" in report(gateway, last)["automatic"]["why"]


def test_what_a_version_was_told_is_left_to_cross_validation(gateway: Gateway, dataset: str) -> None:
    audit = draw(gateway, dataset, n=80)
    answer_all(gateway, audit)
    right = {int(id): [0.9, 0.1] if truth(id) == "no" else [0.1, 0.9] for id in audit["documents"]}
    wrong = {position: row[::-1] for position, row in sorted(right.items())[:3]}
    publish(
        gateway.store, dataset=dataset, calibrated=True, annotations=80, left_out=dict(sorted((right | wrong).items()))
    )
    publish(gateway.store, dataset=dataset, calibrated=True, annotations=80)
    versions = {each["version"]: each for each in report(gateway, audit)["versions"]}
    assert [(each["labels"], each["held_out"], each["errors"]) for _, each in sorted(versions.items())] == [
        (80, 0, 0),
        (80, 80, 3),
        (0, 0, 0),
    ]
    assert "by version 1" in report(gateway, audit)["automatic"]["why"], "the last one from before the audit"


def test_versions_of_a_deleted_dataset_are_measured_where_they_are_from_before_the_audit(
    gateway: Gateway, dataset: str
) -> None:
    """A later one may have been told any label of the audit."""
    other = gateway.upload([{"indices": [0], "label": "no"}, {"indices": [1], "label": "yes"}])["id"]
    publish(gateway.store, dataset=other)
    audit = draw(gateway, dataset, n=50)
    answer_all(gateway, audit)
    publish(gateway.store, dataset=other)
    gateway.client.delete(f"/v1/datasets/{other}").raise_for_status()
    found = report(gateway, audit)
    assert [(each["version"], each["learned"], each["labels"]) for each in found["versions"]][:2] == [
        (3, None, 0),
        (2, None, 50),
    ]
    assert "version 3, 2" in found["warnings"][0]


def test_what_was_left_out_is_a_warning(gateway: Gateway, dataset: str) -> None:
    audit = draw(gateway, dataset, n=3)
    annotate(gateway, dataset, {"document": audit["documents"][0], "action": "skip"})
    found = report(gateway, audit)
    assert (found["skipped"], found["open"]) == (1, audit["documents"][1:])
    assert "left out" in found["warnings"][0]


def test_what_does_not_exist_is_404(gateway: Gateway, dataset: str) -> None:
    problem_of(gateway.client.get(f"/v1/datasets/{dataset}/audits/audit-{'0' * 24}"), 404)
    problem_of(gateway.client.get(f"/v1/datasets/{dataset}/audits/x"), 404)
    problem_of(gateway.client.post(f"/v1/datasets/{dataset}/audits", json={"model": "none"}), 404)


def test_where_all_have_labels_there_is_nothing_to_draw(gateway: Gateway) -> None:
    dataset = gateway.upload([{"indices": [0], "label": "a"}])["id"]
    problem_of(gateway.client.post(f"/v1/datasets/{dataset}/audits", json={}), 409)
