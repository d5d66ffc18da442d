"""Traces that are damaged in many ways, as ``scripts/damage.py`` does it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from scripts.damage import CORPUS, FAILURES, files_under, outcomes_of
from tests.attack.trying import SAMPLES, Outcome, Setting

WHOLE: Final = 20_000



def tries(setting: Setting) -> Iterator[Outcome]:
    """Damage the files of the corpus of real traces, or the samples where it is not here."""
    corpus = CORPUS.is_dir()
    files = list(files_under([CORPUS if corpus else SAMPLES]))
    wanted = round(WHOLE * setting.share)
    if wanted < len(files):
        files = setting.draw(0).sample(files, max(1, wanted))
    each = math.ceil(wanted / len(files))
    for name, path in files[setting.job :: setting.jobs]:
        kind = "(cannot be read)"
        for outcome in outcomes_of(path, name, each, setting.seed):
            if isinstance(outcome, str):
                kind = outcome
                continue
            fell = outcome.failure if outcome.failure in FAILURES else ""
            case = f"{fell}: {name} #{outcome.number} ({outcome.kind}): {outcome.detail}"
            what = f"{'a real trace' if corpus else 'a sample'}: {kind}"
            yield Outcome(setting.kind, what, case if fell else "")
