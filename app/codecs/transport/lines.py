"""Text with a document a line, cut into lines; the cuts between blocks do not matter."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

from app.codecs.base import Decoder
from app.codecs.json.text import document_too_long
from core.errors import MAX_FAULTS, Fault, refuse
from storage.repositories.datasets import Batch

T = TypeVar("T")


class InvalidLine(Exception):
    """A line that is not a document. The fault names the document only if that has an id."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class LinesDecoder(Decoder):
    """Cuts the text into lines and parses many at a time; raises LimitExceeded for a line of more than ``longest``
    bytes.
    """

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._rest = bytearray()
        self._number = 1
        self.position = 0
        """Number of documents so far."""

    def feed(self, data: bytes) -> Iterator[Batch]:
        """See Decoder."""
        end = data.rfind(b"\n") + 1
        if end:
            block, self._rest = bytes(self._rest) + data[:end], bytearray(data[end:])
        else:
            block = b""
            self._rest += data
        # complete lines are checked as well as the rest: what is refused must not depend on where the text was cut
        lines: list[bytes | bytearray] = [*(block.split(b"\n")[:-1] if len(block) > self._longest else []), self._rest]
        for number, line in enumerate(lines, self._number + block.count(b"\n") + 1 - len(lines)):
            if len(line) > self._longest:
                raise document_too_long(line, f"in line {number}", self._longest)
        return self._batches(block)

    def finish(self) -> Iterator[Batch]:
        """See Decoder. The last line need not end with a line feed."""
        block, self._rest = bytes(self._rest), bytearray()
        return self._batches(block)

    @abstractmethod
    def batch_of(self, block: bytes) -> Batch | None:
        """The documents of complete lines, or None if there are none; ``one_by_one`` finds out which line is wrong."""

    def one_by_one(self, block: bytes, parse: Callable[[bytes], T | None]) -> list[T]:
        """The parsed lines, without lines that are no document (None).

        Raises InvalidDocuments with the numbers of the lines for which ``parse`` raises InvalidLine.
        """
        parsed: list[T] = []
        faults: list[Fault] = []
        for number, line in enumerate(block.split(b"\n"), self._number):
            try:
                found = parse(line)
            except InvalidLine as wrong:
                name = wrong.fault.document or self.position + len(parsed) + len(faults)
                faults.append(wrong.fault._replace(document=name, detail=f"line {number}: {wrong.fault.detail}"))
                if len(faults) == MAX_FAULTS:
                    break
            else:
                if found is not None:
                    parsed.append(found)
        refuse(faults)
        return parsed

    def _batches(self, block: bytes) -> Iterator[Batch]:
        # lines that are empty say nothing, and a gzip of 16 MB has billions of them
        batch = None if not block or block.isspace() else self.batch_of(block)
        self._number += block.count(b"\n")
        if batch is not None:
            self.position += batch.rows.n_rows
            yield batch
