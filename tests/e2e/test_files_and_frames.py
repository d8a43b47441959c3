"""Doors of the whole service: scikit-learn's checks of the classifier, and commands from a table to labels."""

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from halfmoon import sklearn as door
from sklearn.utils.estimator_checks import check_estimator

from app.cli.commands import main
from tests.e2e.service import Service

TABLE = """ticket,body,topic,place
1,The keeper saved a penalty in the cup final.,sport,Rome
2,The minister lost a vote in the senate.,politics,Oslo
3,A late penalty for the visitors decided the cup final.,,Rome
4,The senate must vote on the budget and the new treaty.,,Oslo
5,"Cup final: the visitors won in the last, late minutes.",,=Bern
6,The minister defends the treaty and the budget.,,
"""


@pytest.fixture(scope="module", autouse=True)
def _closed_clients() -> Iterator[None]:
    """Classifiers share the client of a service for as long as the process lives."""
    yield
    while door._shared:
        door._shared.popitem()[1].close()


@pytest.mark.slow
def test_the_checks_of_scikit_learn(service: Service) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # the checks are of the client; the fits of auto, which take longer, are those of the other tests
        classifier = door.HalfmoonClassifier("svm", options={"probabilities": True}, url=service.url)
        results = check_estimator(classifier, on_fail=None, on_skip=None)
    assert len(results) > 40
    assert [
        (each["check_name"], each["exception"]) for each in results if each["status"] not in ("passed", "skipped")
    ] == []
    skipped = {each["check_name"] for each in results if each["status"] == "skipped"}
    assert skipped <= {"check_array_api_input", "check_classifiers_multilabel_output_format_decision_function"}


def test_texts_with_gaps_among_the_labels(service: Service) -> None:
    rows = list(csv.DictReader(TABLE.splitlines()))
    texts, labels = [row["body"] for row in rows], [row["topic"] for row in rows]
    for missing in ("", None, np.nan):
        given = np.array([label or missing for label in labels], dtype=object)
        found = door.HalfmoonClassifier(url=service.url).fit(texts, given)
        assert found.transduction_.tolist() == ["sport", "politics", "sport", "politics", "sport", "politics"]
    column = pd.Series([label or None for label in labels], dtype="string")
    for y in ([label or np.nan for label in labels], column):
        found = door.HalfmoonClassifier(url=service.url).fit(texts, y)
        assert found.classes_.tolist() == ["politics", "sport"]
        assert found.transduction_.tolist() == ["sport", "politics", "sport", "politics", "sport", "politics"]
    assert found.predict(["The visitors came late."]).tolist() == ["sport"]
    assert found.predict_proba(texts).shape == (6, 2)


def test_minus_one_is_unlabeled_unless_it_must_be_a_class(service: Service) -> None:
    rows = np.array([[1.0, 0], [0, 1], [0.9, 0.1], [0.1, 0.9]])
    found = door.HalfmoonClassifier("svm", url=service.url).fit(rows, [3, 4, -1, -1])
    assert (found.classes_.tolist(), found.transduction_.tolist()) == ([3, 4], [3, 4, 3, 4])
    with pytest.warns(UserWarning, match="-1 is taken as a class"):
        found = door.HalfmoonClassifier("svm", url=service.url).fit(rows, [1, -1, 1, -1])
    assert found.classes_.tolist() == [-1, 1]


def test_an_indicator_matrix_has_several_labels_a_row(service: Service) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (60, 3))
    rows = np.hstack([y, 1 - y]) + 0.1 * rng.standard_normal((60, 6))
    given = y.copy()
    given[40:] = -1
    found = door.HalfmoonClassifier(url=service.url).fit(rows, given)
    assert (found.transduction_[:40] == y[:40]).all()
    assert (found.predict(rows) == y).mean() > 0.9
    assert found.predict_proba(rows).shape == (60, 3)
    assert found.score(rows[:40], y[:40]) > 0.8


def test_from_a_table_to_labels(service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out = tmp_path / "tickets.csv", tmp_path / "labels.csv"
    table.write_text(TABLE)
    columns = ["--text", "body", "--label", "topic", "--url", service.url]
    assert main(["label", str(table), "--id", "ticket", "--out", str(out), *columns]) == 0
    rows = [line.split(",") for line in out.read_text().splitlines()]
    assert rows[0] == ["id", "label", "score", "probability", "place"]
    assert [[row[0], row[1], row[4]] for row in rows[1:]] == [
        *(["3", "sport", "Rome"], ["4", "politics", "Oslo"], ["5", "sport", "'=Bern"], ["6", "politics", ""])
    ]
    assert main(["train", str(table), "--watch", *columns]) == 0
    assert "tickets version 2" in capsys.readouterr().out
    assert main(["labels", "tickets", "--url", service.url]) == 0, "the file gives its name to the data"
