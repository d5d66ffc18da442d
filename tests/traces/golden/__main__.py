"""The command that records the spans of golden inputs and adds inputs; see the package."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.traces.golden import (
    EXPECTED,
    INPUTS,
    OUTSIDE,
    GoldenInput,
    describe_format,
    formats,
    write_digests,
)
from tests.traces.golden.damage import write_damage


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.traces.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record the spans that are read now")
    parser.add_argument(
        "--add",
        nargs=2,
        metavar=("FORMAT", "PATH"),
        help="add a trace file, or a folder of one run, to the inputs of a format",
    )
    arguments = parser.parse_args()
    if arguments.add:
        _add(arguments.add[0], Path(arguments.add[1]))
    if arguments.write:
        _write()
    if not arguments.add and not arguments.write:
        parser.print_help()


def _add(name: str, path: Path) -> None:
    target = INPUTS / f"{name}.jsonl"
    count = len(target.read_text("utf-8").splitlines()) if target.exists() else 0
    if path.is_dir():
        files = {
            file.relative_to(path).as_posix(): file.read_bytes()
            for file in sorted(path.rglob("*"))
            if file.is_file()
        }
        opened = "."
    else:
        files = {path.name: path.read_bytes()}
        opened = path.name
    added = GoldenInput(f"{count + 1:03}-{path.stem}", opened, files)
    with target.open("a", encoding="utf-8") as file:
        file.write(added.to_line())
    print(f"added {added.name} to {target}; record it with --write")


def _write() -> None:
    EXPECTED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name in formats():
            lines = describe_format(name, Path(scratch))
            (EXPECTED / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), "utf-8")
            print(f"{name}: {len(lines)} lines")
        write_damage(Path(scratch) / "damage")
    if all(folder.is_dir() for folder in OUTSIDE.values()):
        write_digests()
    else:
        print("the traces outside the repository are absent: their digests stay as they are")


if __name__ == "__main__":
    main()
