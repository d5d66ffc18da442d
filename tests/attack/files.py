"""Traces that are damaged in many ways, as ``scripts/damage.py`` does it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from mast_tui.traces.library import read_file
from scripts.damage import CORPUS, FAILURES, files_under, outcomes_of
from tests.attack.trying import SAMPLES, Outcome, Setting

WHOLE: Final = 20_000
EACH_AT_LEAST: Final = 50


def holds_traces(path: Path) -> bool:
    return bool(read_file(path, named=False).traces)


def tries(setting: Setting) -> Iterator[Outcome]:
    """Damage the files of the corpus of real traces, or the samples where it is not here."""
    count = max(1, round(WHOLE * setting.share))
    corpus = CORPUS.is_dir()
    files = list(files_under([CORPUS if corpus else SAMPLES]))
    setting.draw(0).shuffle(files)
    # A process and a first reading for each file: for a small share a few files will do.
    most = max(1, count // EACH_AT_LEAST)
    files = list(islice((file for file in files if holds_traces(file[1])), most))
    each = math.ceil(count / len(files))
    for name, path in files[setting.job :: setting.jobs]:
        kind = "(cannot be read)"
        for outcome in outcomes_of(path, name, each, setting.seed):
            if isinstance(outcome, str):
                kind = outcome
                continue
            failure = outcome.failure if outcome.failure in FAILURES else ""
            case = f"{failure}: {name} #{outcome.number} ({outcome.kind}): {outcome.detail}"
            attack = f"{'a real trace' if corpus else 'a sample'}: {kind}"
            yield Outcome(setting.kind, attack, case if failure else "")
