"""A training that would need more memory than the limit does not begin."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from core.documents.kinds import TextRows
from core.documents.text.tfidf_fit import fit_terms
from core.memory_estimate import expected_text_size, training_bytes
from core.options.auto import AutoOptions
from core.options.base import Options, TrainingSize
from core.options.kernel import CccpOptions, KernelOptions, RampOptions
from core.options.linear import AnnealingOptions, SvmOptions, TsvmOptions
from core.options.relaxation import CtsvmOptions
from core.options.text import TextOptions
from storage.repositories.datasets import Batch
from storage.store import Store
from tests.memory import measured
from tests.stores import failure_of, make_dataset, submit
from workers.worker.attempt import Attempts
from workers.worker.context import WorkerContext
from workers.worker.run import memory_limit

MIB = 2**20


def test_a_job_that_is_too_large_fails_before_it_starts(
    context: WorkerContext, store: Store, monkeypatch: pytest.MonkeyPatch, id: str
) -> None:
    import core.train

    monkeypatch.setattr(core.train, "train", lambda *_, **__: pytest.fail("it has begun"))
    Attempts(context._replace(max_job_bytes=50 * MIB)).run(id)
    error = failure_of(store, id)
    assert (error.status, error.type) == (413, "/problems/job-too-large")
    needs = "the training would need up to 64 MiB of memory, and a job may have 50 MiB here"
    assert error.detail == f"{needs}: train on fewer documents"


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        (CccpOptions(), 400_000_000),
        (KernelOptions(), 4_000_000),
        (CccpOptions(cache_bytes=3 * MIB), 3 * MIB),
        (RampOptions(), 4_000_000),
        (RampOptions(start="subset", subset_fraction=0.498), 4_000_000 + 8_000_000),
        (RampOptions(start="subset", cache_bytes=3 * MIB, subset_fraction=0.5), 6 * MIB),
    ],
)
def test_what_makes_a_kernel_training_need_less_is_its_cache(options: KernelOptions, kept: int) -> None:
    told = f"lower cache_bytes, since {kept / MIB:.0f} MiB of it are for kernel values, or train on fewer documents"
    size = TrainingSize(10_000, 1000, 10, 10, 2)
    assert options.memory_remedy(size) == told
    without = options.model_copy(update={"cache_bytes": 0})
    assert without.memory_remedy(size) == "train on fewer documents"
    assert training_bytes(options, size) - training_bytes(without, size) == kept


@pytest.mark.parametrize(
    ("name", "options", "n_documents", "n_nonzeros", "n_features", "n_classes", "measured"),
    [
        ("svm", SvmOptions(), 400_000, 4_000_000, 10_000, 2, 29),
        ("tsvm", TsvmOptions(positive_fraction="labeled"), 400_000, 4_000_000, 10_000, 2, 39),
        ("tsvm", TsvmOptions(), 400_000, 4_000_000, 10_000, 2, 356),
        ("svm", SvmOptions(probabilities=True), 400_000, 4_000_000, 10_000, 2, 108),
        ("da", AnnealingOptions(positive_fraction="labeled"), 400_000, 4_000_000, 10_000, 2, 57),
        ("tsvm", TsvmOptions(positive_fraction="labeled"), 400_000, 4_000_000, 10_000, 8, 421),
        ("tsvm", TsvmOptions(positive_fraction="labeled"), 400_000, 4_000_000, 10_000, 16, 474),
        ("tsvm", TsvmOptions(positive_fraction="labeled"), 20_000, 400_000, 2_000_000, 8, 312),
        ("cccp_tsvm", CccpOptions(positive_fraction="labeled"), 5_000, 50_000, 10_000, 2, 102),
        ("cccp_tsvm", CccpOptions(), 5_000, 50_000, 10_000, 2, 106),
        ("da", AnnealingOptions(), 400_000, 4_000_000, 10_000, 2, 355),
        ("auto", AutoOptions(), 400_000, 4_000_000, 10_000, 2, 421),
        ("auto", AutoOptions(positive_fraction="labeled"), 400_000, 4_000_000, 10_000, 2, 421),
        ("ctsvm", CtsvmOptions(positive_fraction="labeled"), 1_500, 15_000, 10_000, 2, 262),
        ("ctsvm", CtsvmOptions(positive_fraction="labeled"), 500, 5_000, 10_000, 8, 169),
    ],
)
def test_the_estimate_is_above_what_was_measured_but_not_by_much(
    name: str, options: Options, n_documents: int, n_nonzeros: int, n_features: int, n_classes: int, measured: int
) -> None:
    estimate = training_bytes(options, TrainingSize(n_documents, 1000, n_nonzeros, n_features, n_classes)) / MIB
    assert measured <= estimate <= 1.5 * measured + 128


@pytest.mark.parametrize(("n_classes", "least"), [(2, 80), (20, 8 * 12 * 20)])
@pytest.mark.parametrize("options", [TsvmOptions(), AutoOptions()])
def test_scores_of_labels_left_out_count(options: Options, n_classes: int, least: int) -> None:
    """A number a fold, a λ, a class and a label; of two classes one a fraction, in several copies."""
    size = TrainingSize(200_000, 1000, 2_000_000, 10_000, n_classes)
    many = size._replace(n_labeled=101_000)
    assert training_bytes(options, many) - training_bytes(options, size) >= least * 100_000
    assert training_bytes(SvmOptions(), many) == training_bytes(SvmOptions(), size)


@pytest.mark.parametrize(
    ("n_documents", "n_features", "n_classes", "n_threads", "measured"),
    [
        (100_000, 500_000, 16, 1, 291),
        (100_000, 500_000, 16, 16, 604),
        (100_000, 500_000, 16, 48, 672),
        (50_000, 300_000, 64, 48, 810),
    ],
)
def test_threads_that_begin_more_problems_count(
    n_documents: int, n_features: int, n_classes: int, n_threads: int, measured: int
) -> None:
    """Problems that other threads have begun keep their vectors, though no more than a block is worked on at a time."""
    size = TrainingSize(n_documents, 3000, 20 * n_documents, n_features, n_classes, n_threads=n_threads)
    estimate = training_bytes(TsvmOptions(positive_fraction="labeled"), size) / MIB
    assert measured <= estimate <= 2 * measured + 256


def test_what_a_container_is_bounded_to(tmp_path: Path) -> None:
    machine = memory_limit(tmp_path)
    assert machine > 100 * MIB
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_limit(tmp_path) == machine
    (tmp_path / "memory.max").write_text(f"{64 * MIB}\n")
    assert memory_limit(tmp_path) == 64 * MIB


@pytest.mark.parametrize(
    ("name", "ngrams", "n_bytes", "measured", "n_nonzeros"),
    [
        ("20 newsgroups", 1, 35_900_000, 18, 2_854_647),
        ("20 newsgroups", 2, 35_900_000, 50, 6_466_812),
        ("a tenth of them", 2, 3_800_000, 11, 543_310),
        ("30,000 reviews", 2, 38_900_000, 58, 9_159_874),
        ("sentences", 1, 1_200_000, 2, 171_045),
        ("text messages", 2, 450_000, 2, 112_820),
        ("by Zipf's law", 1, 87_300_000, 78, 12_436_315),
        ("by Zipf's law", 2, 87_300_000, 275, 17_410_451),
        ("a tenth of them", 1, 8_700_000, 23, 1_154_539),
        ("a tenth of them", 2, 8_700_000, 42, 1_608_042),
    ],
)
def test_what_is_expected_of_text_is_above_what_was_measured(
    name: str, ngrams: Literal[1, 2], n_bytes: int, measured: int, n_nonzeros: int
) -> None:
    size = expected_text_size(1000, n_bytes, TextOptions(ngrams=ngrams))
    assert measured <= size.making_bytes / MIB <= 3 * measured + 64 + 16
    assert n_nonzeros <= size.n_nonzeros <= 2.1 * n_nonzeros


@pytest.mark.parametrize("ngrams", [1, 2])
def test_finding_terms_takes_what_was_expected(ngrams: Literal[1, 2]) -> None:
    words = [f"w{number}" for number in np.random.default_rng(0).zipf(1.3, 60_000).clip(max=10**6).tolist()]
    texts = TextRows.of([" ".join(words[start : start + 100]) for start in range(0, len(words), 100)])
    expected, held = expected_text_size(texts.n_rows, texts.data.nbytes, TextOptions(ngrams=ngrams)).making_bytes, 0

    def checkpoint(done: float, bytes_held: int) -> None:
        nonlocal held
        held = max(held, bytes_held)

    fit_terms(texts, TextOptions(ngrams=1), lambda done, held: None)  # what is loaded with the first is not counted
    with measured() as memory:
        fit_terms(texts, TextOptions(ngrams=ngrams), checkpoint)
    assert held <= memory.peak <= expected


@pytest.mark.parametrize(("most", "told"), [(66, "set text.ngrams to 1"), (80, "train on fewer documents")])
def test_a_job_on_text_that_is_too_large_fails_before_its_terms_are_looked_for(
    context: WorkerContext, store: Store, monkeypatch: pytest.MonkeyPatch, most: int, told: str
) -> None:
    monkeypatch.setattr("workers.worker.training_inputs.fit_terms", lambda *_, **__: pytest.fail("it has begun"))
    dataset = make_dataset(
        store, [Batch(TextRows.of(["some words of a text " * 100] * 1000), ["a", "b", *[None] * 998])]
    )
    id = submit(store, dataset=dataset.id, algorithm="auto", text={})
    Attempts(context._replace(max_job_bytes=most * MIB)).run(id)
    error = failure_of(store, id)
    assert (error.status, error.type) == (413, "/problems/job-too-large")
    assert told in error.detail
