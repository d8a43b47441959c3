"""Rules, each broken in a copy of the checkout: ``python -m tests.mutants [word …]`` says which tests notice.

A break replaces a text of one file. The named tests must fail then; words choose breaks by their rules.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LEFT_OUT = (".git", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache", "build")


class Mutant(NamedTuple):
    """A rule, the break of it, and the tests that must fail."""

    rule: str
    file: str
    text: str
    replacement: str
    tests: str


MUTANTS = (
    Mutant(
        "an attempt's number is a fencing token",
        "storage/repositories/job_attempts.py",
        "return attempt if created or self._attempt(id, attempt.number) == attempt else None",
        "return attempt",
        "tests/storage/repositories/test_jobs.py",
    ),
    Mutant("a lease has one holder", "storage/queue/leases.py", "nx=True, px=", "px=", "tests/storage/queue"),
    Mutant(
        "the first outcome counts",
        "storage/repositories/jobs.py",
        "return self._store.create(key, data) or self._store.read(key) == data",
        "return self._store.create(key, data) or True",
        "tests/storage/repositories/test_jobs.py",
    ),
    Mutant(
        "a job is published once",
        "storage/repositories/models.py",
        "if version.job == request.id:",
        "if version.job != request.id:",
        "tests/storage/repositories/test_jobs.py tests/storage/repositories/test_models.py",
    ),
    Mutant(
        "a cancel is heard while a job runs",
        "workers/worker/heartbeat.py",
        "if self.reason is None and self._context.redis_state.cancel_requested(self._job_id):",
        "if False and self._context.redis_state.cancel_requested(self._job_id):",
        "tests/workers/worker/test_attempt.py",
    ),
    Mutant(
        "a body has a limit",
        "app/codecs/dispatch.py",
        'check_limit(size, "bytes in the body", bounds.body_bytes)',
        "pass",
        "tests/app/datasets/test_refused_documents.py tests/app/http/test_limits.py",
    ),
    Mutant(
        "a key is for the calls of its scopes",
        "app/http/access.py",
        "if scopes.isdisjoint(key.scopes):",
        "if not key.scopes:",
        "tests/app/http/test_access.py",
    ),
    Mutant(
        "a gateway answers to its hosts alone",
        "app/http/access.py",
        "if len(sent) > 1 or not allowed:",
        "if len(sent) > 1:",
        "tests/app/http/test_access.py",
    ),
    Mutant(
        "a random sample of labels says the fractions of many classes",
        "core/selection/answers.py",
        "means = (counts + priors) / (n_labels + worths)[:, None]",
        "means = priors / worths[:, None]",
        "tests/core/selection/test_answers.py",
    ),
    Mutant(
        "probabilities agree with the class fractions",
        "core/validation/calibration.py",
        "iterative_proportional_fitting(_likelihoods(slopes, offsets, scores), fractions, checkpoint)",
        "np.ones(n_classes)",
        "tests/core/validation/test_calibration.py",
    ),
    Mutant(
        "conjugate gradients stop at the residual",
        "core/optimizers/newton.py",
        "goal = relative_residual * relative_residual * norm",
        "goal = relative_residual * norm",
        "tests/core/optimizers",
    ),
    Mutant(
        "sums are added in the order of the parts",
        "core/engine/passes.py",
        "            found += sums\n",
        "            found = sums + found * (1 + 1e-15)\n",
        "tests/core/engine/test_passes.py",
    ),
    Mutant(
        "a key of idempotency is for one request",
        "storage/repositories/idempotency.py",
        "if self.fingerprint != key.fingerprint:",
        "if False:",
        "tests/storage/repositories/test_idempotency.py",
    ),
    Mutant(
        "retention keeps the version that is served",
        "storage/upkeep/cleanup.py",
        "if version.number != served:",
        "if True:",
        "tests/storage/upkeep/test_cleanup.py",
    ),
    Mutant(
        "datasets have a quota",
        "storage/repositories/datasets/quota.py",
        "if count >= self._datasets:",
        "if False:",
        "tests/app/http/test_limits.py",
    ),
    Mutant(
        "cells of CSV are no formulas",
        "app/http/answers.py",
        'return f"\'{value}"',
        "return value",
        "tests/app/http/answers/test_tables.py",
    ),
    Mutant(
        "the signature of a webhook covers its time",
        "app/services/webhooks/sender.py",
        'f"{id}.{timestamp}."',
        'f"{id}."',
        "tests/app/services/webhooks/test_sender.py",
    ),
    Mutant(
        "webhooks call no private address",
        "app/services/webhooks/sender.py",
        "each.is_global\n        and not each.is_multicast",
        "not each.is_multicast",
        "tests/app/services/webhooks/test_sender.py",
    ),
    Mutant(
        "a label left out is not learned from",
        "core/validation/folds.py",
        "kept = np.flatnonzero(folds != fold)",
        "kept = np.arange(len(folds))",
        "tests/core/validation/test_cross_validation.py",
    ),
    Mutant(
        "the digest of a relabeled dataset covers its labels",
        "storage/repositories/datasets/manifest.py",
        "for name in sorted(files)}",
        'for name in sorted(files) if name != "labels"}',
        "tests/storage/repositories/datasets/test_repository.py tests/app/datasets",
    ),
    Mutant(
        "the files of a deleted version stay while its deletion may be undone",
        "storage/repositories/models.py",
        "if job.version is not None and job.outcome else {}",
        "if job.version is not None and job.outcome and not self.deleted(job.request.model, job.version) else {}",
        "tests/storage/upkeep/test_cleanup.py",
    ),
    Mutant(
        "votes weigh as much in the answers as their model does in the sum",
        "core/weak_supervision/pooling.py",
        'weight = report["certain_labels"]["weight"]',
        'weight = (1.0 + report["certain_labels"]["weight"]) / 2',
        "tests/core/weak_supervision/test_pooling.py",
    ),
    Mutant(
        "models are added by how likely they make labels left out",
        "core/weak_supervision/opinion_pool.py",
        "softmax(likely[None])[0][:, None]",
        "1 / len(_PAIRS)",
        "tests/core/weak_supervision/test_opinion_pool.py",
    ),
    Mutant(
        "the model of votes has the class fractions of all documents",
        "core/weak_supervision/pooling.py",
        "calibration=calibration_at(known.slopes, known.offsets, scores, fractions, watch)",
        "calibration=known",
        "tests/core/weak_supervision/test_pooling.py",
    ),
    Mutant(
        "certain labels of other classes do not silence the votes for a class that has none",
        "core/weak_supervision/pooling.py",
        "np.where(self.classes.any(axis=0), share, 1.0)[labels]",
        "share",
        "tests/core/weak_supervision/test_pooling.py",
    ),
    Mutant(
        "a part of a sum does not warn of what it does alone",
        "core/train.py",
        "not len(checked.unlabeled) and not checked.task.supervised",
        "not len(checked.unlabeled)",
        "tests/core/weak_supervision/test_pooling.py",
    ),
)


def broken(mutant: Mutant, root: Path) -> str:
    """The file with the break; raises ValueError if its text is not there once."""
    source = (root / mutant.file).read_text()
    if source.count(mutant.text) != 1:
        raise ValueError(
            f"{mutant.rule}: {mutant.file} has {mutant.text!r} {source.count(mutant.text)} times, not once"
        )
    return source.replace(mutant.text, mutant.replacement)


def survivors(mutants: Sequence[Mutant]) -> Iterator[Mutant]:
    """Mutants that no test notices, each tried in one copy of the checkout."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder) / "checkout"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
        for mutant in mutants:
            path = copy / mutant.file
            source = path.read_text()
            path.write_text(broken(mutant, copy))
            caught = _fails(mutant, copy)
            path.write_text(source)
            print(f"{'caught' if caught else 'SURVIVED'}: {mutant.rule}", flush=True)
            if not caught:
                yield mutant


def _fails(mutant: Mutant, copy: Path) -> bool:
    """Whether a test fails; raises RuntimeError if none was run."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests.split()]
    environment = {"PYTHONPATH": str(copy), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())}
    done = subprocess.run(["nice", *command], cwd=copy, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{mutant.rule}: pytest ended with {done.returncode}:\n{done.stdout[-2000:]}")
    return done.returncode == 1


def main(words: Sequence[str]) -> int:
    """Try the mutants, and fail if one survives."""
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.rule for word in words)]
    return len(list(survivors(chosen)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
