"""Damage files in many ways and read them: no read may crash, hang, grow, or be unsound.

    .venv/bin/python scripts/damage.py [PATH ...] [--each N] [--seed S] [--jobs J] [--misses]

PATH is a file or a folder; the default is the corpus of real traces beside the project. Each file
is damaged N times (200) by the mutations of ``tests/traces/damage.py``; the same seed gives the
same damage. Files are read in processes of their own with 1 GB of memory; a read that takes more
than 5 s of processor time is slow. The last column of the printed Markdown table counts the spans
on intact lines of JSONL files that one damage leaves readable. Below it is one case of each kind of
failure; the exit code is 1 if there is any.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from tests.traces.damage import (
    Intact,
    Mutation,
    is_unsound,
    missing_keys,
    mutate,
    read_damaged,
    read_intact,
)

CORPUS: Final = Path(__file__).resolve().parents[2] / "shared" / "corpus"
SECONDS: Final = 5.0
PATIENCE: Final = 60.0
"""Seconds without a message after which a process is stopped, long enough for a busy machine."""

MEMORY: Final = 1 << 30
FAILURES: Final = ("traceback", "slow", "memory", "unsound")


@dataclass(frozen=True, slots=True)
class MutationResult:
    """The result of reading a file after one mutation."""

    number: int
    kind: str
    failure: str | None = None
    detail: str = ""
    spans: int = 0
    missing: int = 0


@dataclass(slots=True)
class FormatDamage:
    """A row of the table."""

    files: int = 0
    mutations: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    spans: int = 0
    missing: int = 0


def _read_mutations(path: Path, name: str, numbers: range, seed: int, results: Connection) -> None:
    """Damage and read a file with limited memory, and send its format, each kind and result."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    intact = read_intact(path)
    results.send(intact.report.format or "(no trace)")
    data = path.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / path.name
        for number in numbers:
            mutation = mutate(data, random.Random(f"{seed}:{name}:{number}"))
            results.send((number, mutation.kind))
            target.write_bytes(mutation.data)
            results.send(_read_mutation(intact, data, number, mutation, target))


def _read_mutation(
    intact: Intact, data: bytes, number: int, mutation: Mutation, target: Path
) -> MutationResult:
    """Read a damaged file and compare its spans with those of the intact file."""
    result = MutationResult(number, mutation.kind)
    start = time.process_time()
    try:
        comparison = missing_keys(intact, data, mutation, read_damaged(target))
        if comparison is not None:
            spans, missing = comparison
            detail = ", ".join(sorted(missing)[:3])
            result = replace(result, detail=detail, spans=spans, missing=len(missing))
    except MemoryError:
        return replace(result, failure="memory")
    except Exception as error:  # noqa: BLE001 - every error that a reader does not handle counts
        failure = "unsound" if is_unsound(error) else "traceback"
        detail = "".join(traceback.format_exception(error)[-3:])
        return replace(result, failure=failure, detail=detail)
    seconds = time.process_time() - start
    if seconds > SECONDS:
        return replace(result, failure="slow", detail=f"{seconds:.1f} s")
    return result


def outcomes_of(path: Path, name: str, each: int, seed: int) -> Iterator[str | MutationResult]:
    """Yield the format of a file and the results of its mutations.

    A process that dies is replaced, and the mutation that it read counts as failed.

    Args:
        path: The file.
        name: The name of the file in the seeds of its mutations.
        each: The number of mutations.
        seed: The seed of the run.
    """
    context = multiprocessing.get_context("spawn")
    done = 0
    while done < each:
        receiver, sender = context.Pipe(duplex=False)
        arguments = (path, name, range(done, each), seed, sender)
        process = context.Process(target=_read_mutations, args=arguments)
        process.start()
        sender.close()
        kind = "reading it intact"
        failure = "traceback"  # also of a process that was killed; the detail has its exit code
        try:
            while done < each:
                if not receiver.poll(PATIENCE):
                    failure = "slow"
                    break
                message = receiver.recv()
                if isinstance(message, tuple):
                    kind = message[1]
                    continue
                yield message
                if isinstance(message, MutationResult):
                    done = message.number + 1
        except EOFError:
            pass
        finally:
            if process.is_alive() and done < each:
                process.kill()
            process.join()
            receiver.close()
        if done < each:
            yield MutationResult(done, kind, failure, f"the process ended with {process.exitcode}")
            done += 1


def files_under(paths: list[Path]) -> Iterator[tuple[str, Path]]:
    """Yield the files that may be traces, with names that are the same on every machine."""
    for path in paths:
        if path.is_file():
            yield path.name, path
            continue
        for file in sorted(path.rglob("*")):
            if file.is_file() and file.stat().st_size and file.suffix not in {".md", ".csv"}:
                yield file.relative_to(path).as_posix(), file


def main() -> int:
    """Damage the files, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, default=[CORPUS])
    parser.add_argument("--each", type=int, default=200, help="mutations of each file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--misses", action="store_true", help="name missing spans")
    options = parser.parse_args()
    rows: dict[str, FormatDamage] = {}
    cases: dict[tuple[str, str], str] = {}

    def damage(file: tuple[str, Path]) -> tuple[str, list[str | MutationResult]]:
        name, path = file
        return name, list(outcomes_of(path, name, options.each, options.seed))

    with ThreadPoolExecutor(options.jobs) as pool:
        for name, messages in pool.map(damage, files_under(options.paths)):
            formats = [message for message in messages if isinstance(message, str)]
            row = rows.setdefault(formats[0] if formats else "(cannot be read)", FormatDamage())
            row.files += 1
            for outcome in messages:
                if isinstance(outcome, str):
                    continue
                row.mutations += 1
                row.spans += outcome.spans
                row.missing += outcome.missing
                if outcome.failure is not None:
                    row.failures[outcome.failure] += 1
                problem = outcome.failure or ("missing" if outcome.missing else "")
                case = f"{name} #{outcome.number} ({outcome.kind}): {outcome.detail}"
                if problem:
                    cases.setdefault((problem, outcome.detail[-200:]), case)
            print(f"{name}: done", file=sys.stderr)
    print_table(rows)
    for (problem, _), case in sorted(cases.items()):
        if problem != "missing" or options.misses:
            print(f"\n{problem}: {case}")
    return 1 if any(row.failures.total() for row in rows.values()) else 0


def print_table(rows: dict[str, FormatDamage]) -> None:
    """Print the results by format as a Markdown table."""
    print("| format | files | mutations | " + " | ".join(FAILURES) + " | intact spans kept |")
    print("|---|---|---|---|---|---|---|---|")
    for name, row in sorted(rows.items()):
        failures = " | ".join(str(row.failures[failure]) for failure in FAILURES)
        intact = f"{row.spans - row.missing} of {row.spans}" if row.spans else ""
        print(f"| {name} | {row.files} | {row.mutations} | {failures} | {intact} |")


if __name__ == "__main__":
    sys.exit(main())
