"""A classifier of scikit-learn that learns from labeled and unlabeled rows by a Halfmoon service."""

import threading
import uuid
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from halfmoon._sync.client import Halfmoon

_TWO = 2
_shared: dict[tuple[str | None, str | None], Halfmoon] = {}
_lock = threading.Lock()


class HalfmoonClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Semi-supervised classifier: it learns from unlabeled rows as well, where ``y`` is −1, "", None or NaN.

    A −1 is a class where fewer than two other classes are left. ``X`` is a matrix, dense or sparse, or a list of texts.
    An indicator matrix ``y``, shape (n_samples, n_classes), has several labels a row; rows of −1 or NaN are unlabeled.

    Parameters: ``algorithm`` and its ``options``, ``text`` (how texts become terms) and ``seed`` as those of a job;
    ``url`` and ``key`` of a service, without which one is started in this environment for all classifiers of the
    process; ``model``, the name of the model there, by default a new one; ``timeout``, seconds that a training may
    take.

    After ``fit``: ``classes_``, shape (n_classes,); ``transduction_``, as ``y``, the labels of all rows, given or
    found; ``several_``, whether rows have several; ``model_`` and ``version_``, the name and number of the version;
    ``report_`` of the training; ``n_features_in_`` unless ``X`` is text.
    """

    def __init__(
        self,
        algorithm: str = "auto",
        *,
        options: dict[str, Any] | None = None,
        text: dict[str, int] | None = None,
        seed: int = 0,
        url: str | None = None,
        key: str | None = None,
        model: str | None = None,
        timeout: float | None = None,
    ) -> None:
        self.algorithm = algorithm
        self.options = options
        self.text = text
        self.seed = seed
        self.url = url
        self.key = key
        self.model = model
        self.timeout = timeout

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - scikit-learn's name
        """Train on the rows, labeled and unlabeled ones together."""
        if y is None:
            raise ValueError(
                f"requires y to be passed, but the target y is None: {type(self).__name__} needs some labels"
            )
        rows = self._rows(X, reset=True)
        if isinstance(y, list | tuple) and y and isinstance(y[0], list | tuple | np.ndarray):
            y = np.array(y)
        if getattr(y, "ndim", 1) == _TWO and y.shape[1] > 1:
            return self._fit_several(rows, y)
        given = column_or_1d(_objects(y), warn=True)
        check_consistent_length(rows, given)
        known = _known(given)
        codes = np.full(len(known), -1)
        self.classes_, codes[known] = np.unique(_plain(given[known]), return_inverse=True)
        if len(self.classes_) < _TWO:
            raise ValueError(f"{type(self).__name__} needs labels of two classes; there is {len(self.classes_)} class")
        for line in self._train(rows, label=[None if code < 0 else code for code in codes.tolist()]):
            codes[int(line.id)] = int(line.label)
        self.transduction_, self.several_ = self.classes_[codes], False
        return self

    def _fit_several(self, rows: Any, y: Any) -> Self:
        """Train on an indicator matrix, whose rows of −1 or NaN are unlabeled."""
        matrix = np.asarray(y.toarray() if hasattr(y, "toarray") else y, dtype=np.float64)
        check_consistent_length(rows, matrix)
        missing = (np.isnan(matrix) | (matrix == -1)).any(axis=1)
        if not np.isin(matrix[~missing], [0, 1]).all():
            raise ValueError("y of two dimensions is an indicator matrix of 0 and 1, with rows of -1 where unlabeled")
        self.classes_ = np.arange(matrix.shape[1])
        lists = [
            None if gone else np.flatnonzero(row).tolist() for row, gone in zip(matrix, missing.tolist(), strict=True)
        ]
        for line in self._train(rows, labels=lists):
            lists[int(line.id)] = line.labels
        self.transduction_, self.several_ = self._indicators(lists), True
        return self

    def _indicators(self, lists: Any) -> NDArray[np.int64]:
        indicators = np.zeros((len(lists), len(self.classes_)), np.int64)
        for row, labels in enumerate(lists):
            indicators[row, list(labels or ())] = 1
        return indicators

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Labels of rows, shape (n_samples,); of several labels an indicator matrix, shape (n_samples, n_classes)."""
        found = self._predicted(X).labels
        if self.several_:
            return self._indicators(found)
        return self.classes_[np.array(found, dtype=np.intp)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Probabilities of rows, shape (n_samples, n_classes)."""
        prediction = self._predicted(X)
        found = prediction.probabilities
        if found is None:
            raise AttributeError("the model has no probabilities; fit with options={'probabilities': True}")
        probabilities = np.zeros((len(found), len(self.classes_)))
        probabilities[:, prediction.classes] = found
        return probabilities

    def _train(self, rows: Any, **labels: Any) -> Any:
        """Train on labels as the service takes them; the labels that the job has found."""
        client = _client(self.url, self.key)
        name = self.model or f"sklearn-{uuid.uuid4().hex}"
        data = client.datasets.create(rows, name=name, **labels)
        job = client.train(
            data, name, algorithm=self.algorithm, options=self.options, text=self.text, seed=self.seed, publish="always"
        ).wait(self.timeout)
        made = job.record.model
        assert made is not None
        self.model_, self.version_, self.report_ = made.name, made.version, dict(job.report)
        return job.iter_labels()

    def _predicted(self, X: Any) -> Any:  # noqa: N803
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        return _client(self.url, self.key).models[self.model_, self.version_].predict(rows)

    def _rows(self, X: Any, *, reset: bool) -> Any:  # noqa: N803
        if _is_text(X):
            return [str(text) for text in X]
        return validate_data(self, X, reset=reset, accept_sparse="csr", dtype=np.float32, ensure_min_samples=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


def _is_text(rows: Any) -> bool:
    if hasattr(rows, "shape"):
        return len(rows.shape) == 1 and len(rows) > 0 and all(isinstance(each, str) for each in rows)
    return isinstance(rows, list | tuple) and bool(rows) and all(isinstance(each, str) for each in rows)


def _objects(y: Any) -> Any:
    """The labels as they were given: where texts stand beside None or NaN, an array of texts would make these words."""
    if hasattr(y, "to_numpy") and str(getattr(y, "dtype", "")).startswith("str"):
        return y.to_numpy(dtype=object, na_value=None)
    mixed = isinstance(y, list | tuple) and len({*map(type, y)}) > 1 and any(isinstance(each, str) for each in y)
    return np.array(y, dtype=object) if mixed else y


def _known(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows have a label, shape (n_samples,); raises ValueError for values that are no labels."""
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise ValueError("Input y contains infinity or a value too large for dtype('float64').")
    missing = np.array([each is None or each == "" or each != each for each in labels.tolist()], bool)
    if missing.all():
        raise ValueError("Input y contains NaN, or nothing but missing labels: some rows need a label")
    check_classification_targets(_plain(labels[~missing]))
    if labels.dtype.kind in "if" or all(isinstance(each, int | float) for each in labels[~missing].tolist()):
        minus = np.array(
            [not gone and each == -1 for each, gone in zip(labels.tolist(), missing.tolist(), strict=True)], bool
        )
        others = set(labels[~(minus | missing)].tolist())
        if minus.any() and len(others) < _TWO:
            warnings.warn("-1 is taken as a class: without it there are fewer than two", stacklevel=4)
        else:
            missing |= minus
    return ~missing


def _plain(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels in a type of their own, where they are objects because some were missing."""
    return np.array(labels.tolist()) if labels.dtype.kind == "O" else labels


def _client(url: str | None, key: str | None) -> Halfmoon:
    """The client of a service, one for the process; without a URL, of a service that is started for it."""
    with _lock:
        if (url, key) not in _shared:
            _shared[url, key] = Halfmoon.local() if url is None else Halfmoon(url, key=key)
        return _shared[url, key]
