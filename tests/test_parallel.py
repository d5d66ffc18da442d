"""Work of several processes: order, errors, and processes that are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import sleep

import pytest

from mast_tui.parallel import LOST, LocalProcesses, NoWorkers, workers_of

pytestmark = pytest.mark.slow


def squares(numbers: Sequence[int]) -> list[int]:
    return [number * number for number in numbers]


def broken(numbers: Sequence[int]) -> list[int]:
    raise ValueError(f"no {numbers[0]}")


class Waits:
    """Work that yields a number at once, and its negative once the file ``until`` exists.

    If the file ``killed`` is missing, the work creates it and kills its process in between.
    """

    def __init__(self, until: Path, killed: Path | None = None) -> None:
        self.until, self.killed = until, killed

    def __call__(self, numbers: Sequence[int]) -> Iterator[int]:
        for number in numbers:
            yield number
            if self.killed is not None and not self.killed.exists():
                self.killed.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            while not self.until.exists():
                sleep(0.01)
            yield -number


class KilledAtOne:
    """Work that kills its process at an item; with the file ``once``, only the first time."""

    def __init__(self, item: int, once: Path | None = None) -> None:
        self.item, self.once = item, once

    def __call__(self, numbers: Sequence[int]) -> list[int]:
        if self.item in numbers and (self.once is None or not self.once.exists()):
            if self.once is not None:
                self.once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return squares(numbers)


def batches(count: int, size: int) -> list[list[int]]:
    return [list(range(start, min(count, start + size))) for start in range(0, count, size)]


def test_results_come_in_the_order_of_the_items() -> None:
    with LocalProcesses(2) as workers:
        assert list(workers.map(squares, batches(50, 3))) == squares(range(50))
        assert list(workers.map(squares, [])) == []


@pytest.mark.parametrize("killed", [False, True])
def test_a_result_is_returned_before_its_batch_is_complete(killed: bool, tmp_path: Path) -> None:
    work = Waits(tmp_path / "more", tmp_path / "killed" if killed else None)
    with LocalProcesses(1) as workers:
        results = workers.map(work, [[5], [6]])
        assert next(results) == 5
        work.until.touch()
        assert [*results] == [-5, 6, -6]
    assert killed == (tmp_path / "killed").exists()


def test_an_error_of_a_process_is_raised_with_its_traceback() -> None:
    with LocalProcesses(1) as workers, pytest.raises(ValueError, match="no 0") as raised:
        list(workers.map(broken, batches(4, 2)))
    assert "in broken" in "".join(raised.value.__notes__)
    for count in ("0", "-1", "many", "²"):
        with pytest.raises(NoWorkers, match="not a number of workers"):
            workers_of(count)


def test_the_batch_of_a_killed_process_is_repeated(tmp_path: Path) -> None:
    work = KilledAtOne(7, tmp_path / "once")
    with LocalProcesses(2) as workers:
        assert list(workers.map(work, batches(20, 4))) == squares(range(20))
    assert (tmp_path / "once").exists()


def process_ids(numbers: Sequence[int]) -> list[int]:
    return [os.getpid() for _ in numbers]


def test_an_idle_process_that_is_killed_is_replaced() -> None:
    with LocalProcesses(1) as workers:
        (process_id,) = workers.map(process_ids, [[0]])
        assert isinstance(process_id, int)
        os.kill(process_id, signal.SIGKILL)
        assert list(workers.map(squares, batches(6, 2))) == squares(range(6))


def test_an_item_that_kills_every_process_is_lost_alone() -> None:
    with LocalProcesses(1) as workers:
        results = list(workers.map(KilledAtOne(5), batches(8, 4)))
    assert results == [*squares(range(5)), LOST, *squares(range(6, 8))]


def test_items_are_read_shortly_before_their_results() -> None:
    drawn = 0

    def endless() -> object:
        nonlocal drawn
        while True:
            drawn += 1
            yield [drawn]

    with LocalProcesses(1) as workers:
        results = workers.map(squares, endless())  # type: ignore[arg-type]
        assert [next(results) for _ in range(3)] == [1, 4, 9]
        assert drawn < 20
