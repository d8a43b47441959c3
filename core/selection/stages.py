"""Progress of work that is made of several runs."""

from core.progress import Observer, TracePoint


class Stages:
    """An observer that tells another one the share of the whole instead of that of the run under way."""

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer
        self._start, self._share = 0.0, 1.0

    def enter(self, start: float, share: float) -> None:
        """The run that begins is ``share`` of the whole, which is done up to ``start``."""
        self._start, self._share = start, share

    def __call__(self, point: TracePoint, /) -> bool:
        """Tell it."""
        if self._observer is None:
            return False
        return self._observer(point._replace(fraction=self._start + self._share * point.fraction))
