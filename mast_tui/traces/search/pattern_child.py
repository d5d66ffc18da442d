"""A process that looks for a regular expression in texts, one after the other.

A pattern can take longer than anyone lives, and while it is matched nothing else of the process
can run: so it is matched here. On a text that takes more than its budget the system ends the
process. This file is run as a script and imports nothing of the project; it takes and gives
packed numbers and UTF-8 through its standard streams.
"""

from __future__ import annotations

import re
import signal
import struct
import sys
import warnings
from typing import BinaryIO, Final

NUMBER: Final = struct.Struct("<Q")
BUDGET: Final = struct.Struct("<d")
COUNT: Final = b"c"
PLACES: Final = b"p"


def take(stream: BinaryIO) -> str | None:
    """The next text of a stream; None at its end."""
    head = stream.read(NUMBER.size)
    if len(head) < NUMBER.size:
        return None
    return stream.read(NUMBER.unpack(head)[0]).decode("utf-8", "surrogatepass")


def packed(text: str) -> bytes:
    """A text as ``take`` takes it."""
    data = text.encode("utf-8", "surrogatepass")
    return NUMBER.pack(len(data)) + data


def places(pattern: re.Pattern[str], text: str, most: int) -> list[tuple[int, int]]:
    """Where the pattern stands in the text; what is empty stands nowhere."""
    found = []
    for match in pattern.finditer(text):
        if match.end() > match.start():
            found.append(match.span())
            if len(found) == most:
                break
    return found


def serve(given: BinaryIO, answers: BinaryIO) -> None:
    """Answer until nothing more is given."""
    warnings.simplefilter("ignore")
    pattern = re.compile(take(given) or "", int(take(given) or 0))
    most = int(take(given) or 0)
    (budget,) = BUDGET.unpack(given.read(BUDGET.size))
    while kind := given.read(1):
        text, shown = take(given), take(given)
        if text is None or shown is None:
            return
        signal.setitimer(signal.ITIMER_VIRTUAL, budget)
        found = places(pattern, text, most)
        if kind == COUNT:
            answer = NUMBER.pack(len(found) or int(bool(places(pattern, shown, 1))))
        else:
            numbers = (NUMBER.pack(number) for place in found for number in place)
            answer = NUMBER.pack(len(found)) + b"".join(numbers)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        answers.write(answer)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
