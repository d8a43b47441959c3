"""Text of a document a line, whatever the pieces in which it comes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

from app.codecs.base import MAX_FAULTS
from app.codecs.documents import refusal, too_long
from core.errors import Fault
from workers.repositories.datasets import Batch

T = TypeVar("T")


class WrongLine(Exception):
    """A line that is not a document; its fault names the document only where that has an id."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class LinesDecoder(ABC):
    """Cuts the text at its lines and has whole blocks of them parsed; raises LimitExceeded for a line of more than ``longest`` bytes."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._number = 1
        self.position = 0
        """documents so far"""

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        end = data.rfind(b"\n") + 1
        if end:
            block, self._rest = bytes(self._rest) + data[:end], bytearray(data[end:])
        else:
            block = b""
            self._rest += data
        # a line that came whole is no shorter for that: what is refused must not depend on where the text was cut
        lines: list[bytes | bytearray] = [*(block.split(b"\n")[:-1] if len(block) > self._longest else []), self._rest]
        for number, line in enumerate(lines, self._number + block.count(b"\n") + 1 - len(lines)):
            if len(line) > self._longest:
                raise too_long(line, f"in line {number}", self._longest)
        return self._batches(block)

    def finish(self) -> Iterator[Batch]:
        """See Decoder; the last line need not end with a line feed."""
        block, self._rest = bytes(self._rest), bytearray()
        return self._batches(block)

    @abstractmethod
    def batch_of(self, block: bytes) -> Batch | None:
        """The documents of whole lines, None if there are none; what is wrong with them is found by ``one_by_one``."""

    def one_by_one(self, block: bytes, parse: Callable[[bytes], T | None]) -> list[T]:
        """What ``parse`` makes of each line, but for None, which is no document; whatever lines it raises WrongLine for are refused by number."""
        parsed: list[T] = []
        faults: list[Fault] = []
        for number, line in enumerate(block.split(b"\n"), self._number):
            try:
                found = parse(line)
            except WrongLine as wrong:
                name = wrong.fault.document or str(self.position + len(parsed) + len(faults))
                faults.append(wrong.fault._replace(document=name, detail=f"line {number}: {wrong.fault.detail}"))
                if len(faults) == MAX_FAULTS:
                    break
            else:
                if found is not None:
                    parsed.append(found)
        if faults:
            raise refusal(faults)
        return parsed

    def _batches(self, block: bytes) -> Iterator[Batch]:
        batch = self.batch_of(block) if block else None
        self._number += block.count(b"\n")
        if batch is not None:
            self.position += batch.rows.n_rows
            yield batch
