"""After the warm-up no training compiles anything."""

import subprocess
import sys

CODE = """
import gc
from functools import partial

import numpy as np
from numba.core.dispatcher import Dispatcher

from core.documents.kinds import TextRows
from core.documents.rows import SparseRows
from core.documents.rows import MEMORY
from core.documents.text.counts import MappedCounter
from core.documents.text.tfidf_fit import fit_by_parts
from core.documents.text.tfidf_fit import fit_terms
from core.documents.text.tfidf_fit import weighed
from core.options.text import TextOptions
from core.registry import OFFERED
from core.train import TrainingContext, TrainingTask, train
from core.warm_up import warming


def compiled():
    return {(each.py_func.__qualname__, str(signature)) for each in gc.get_objects() if isinstance(each,
  Dispatcher) for signature in each.signatures}


list(warming())
before = compiled()
generator = np.random.default_rng(0)
for n_features in (3, 40):  # dense rows, then sparse ones
    for n_classes, stored in ((2, False), (3, True)):
        indices = generator.integers(0, n_features, 120).astype(np.uint32)
        rows = SparseRows(np.arange(0, 121, 6), indices, generator.random(120, np.float32), n_features)
        for array in rows[:3]:
            array.flags.writeable = not stored
        class_indices = np.where(np.arange(20) < 9, np.arange(20) % n_classes, -1).astype(np.int32)
        for offered in OFFERED.values():
            several = "kernel" in offered.options.model_fields
            for options in [{}, {"kernel": "linear"}, {"kernel": "poly"}] if several else [{}]:
                task = TrainingTask(rows, class_indices, range(n_classes), offered.name, options)
                train(task, TrainingContext(threads=2))
texts = TextRows.of([f"number {number % 7000} of {number}" for number in range(50_000)])
terms = fit_terms(texts, TextOptions(), lambda done, held: None, 2)
assert len(terms.keys) > 7000
list(weighed(texts, terms, lambda done, held: None, 2))
fit_by_parts(partial(MappedCounter, texts, MEMORY, 1 << 20, 2), texts, TextOptions(), lambda done, held: None)
print(len(before), sorted(compiled() - before))
"""


def test_no_training_compiles_what_the_warm_up_has_not() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    count, found = done.stdout.split(maxsplit=1)
    assert int(count) > 20
    assert found == "[]\n"
