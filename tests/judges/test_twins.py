"""The judge of paired runs: steps that only the failed runs of a task share."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from mast_tui.judges.twins import MODE, TwinsJudge
from mast_tui.labels import Judgement
from mast_tui.traces.model import Outcome, Trace, TraceMeta
from tests.judges.memory_trace import MemoryTrace
from tests.judges.planted_trials import aimless_trials, long_trials, planted_trials

PATH = ("ls", "cat shop.log", "kubectl get pods", "kubectl rollout restart shop", "curl shop")
OWN_STEPS = ("uptime", "history", "vim notes", "man tar", "git stash", "top", "df -h", "make")
NOTHING = Judgement(judged_modes=())
DELETE = "kubectl delete namespace shop"


def run(name: str, outcome: Outcome, *commands: str, task: str = "7") -> MemoryTrace:
    trace = MemoryTrace(name, TraceMeta(task_id=task, benchmark="b", outcome=outcome))
    trace.user("Mend the shop.")
    for command in commands:
        trace.run(command, "done")
    return trace


def trials(wrong: str, failed: int = 4, succeeded: int = 4) -> list[MemoryTrace]:
    """Return failed runs with a wrong third step, and successful runs."""
    bad = (run(f"bad-{n}", Outcome.FAILED, *PATH[:2], wrong, OWN_STEPS[n]) for n in range(failed))
    good = (run(f"good-{n}", Outcome.SUCCEEDED, *PATH) for n in range(succeeded))
    return [*bad, *good]


def suggests_nothing(runs: Sequence[Trace]) -> bool:
    judge = TwinsJudge(runs)
    return [judge.judge(run) for run in runs] == [NOTHING] * len(runs)


def test_a_step_that_only_failed_runs_share_is_suggested() -> None:
    runs = trials(DELETE)
    judge = TwinsJudge(runs)
    (finding,) = judge.judge(runs[1]).findings
    span = runs[1].span(5)
    assert (finding.mode, finding.first, finding.last) == (MODE, span.key, span.key)
    assert finding.evidence is not None
    assert finding.evidence.placed
    assert DELETE in finding.evidence.quote
    assert finding.rationale.startswith("4 of 4 failed runs of this task do this at some time, "
                                        "none of 4 successful ones.")  # fmt: skip
    assert finding.confidence >= 0.9
    # Of runs that succeed it says nothing, not even that a mode is absent.
    assert judge.judge(runs[-1]) == NOTHING


def test_a_shared_wrong_step_is_found_in_other_words() -> None:
    # Other ids make no other step.
    runs = [
        run(f"bad-{n}", Outcome.FAILED, *PATH[:2], f"kubectl delete pod shop-{n}a9f04e77b1 --now")
        for n in range(4)
    ] + trials("", failed=0)
    judge = TwinsJudge(runs)
    assert [judge.shared_step_by_trace[f"bad-{n}"].index for n in range(4)] == [5] * 4
    # One wrong argument does.
    right, wrong = (f"curl -s --retry 3 mail.example.org:{port}/send" for port in (587, 25))
    runs = [
        *(run(f"bad-{n}", Outcome.FAILED, *PATH[:2], wrong) for n in range(4)),
        *(run(f"good-{n}", Outcome.SUCCEEDED, *PATH[:2], right) for n in range(4)),
    ]
    assert [step.index for step in TwinsJudge(runs).shared_step_by_trace.values()] == [5] * 4


def test_too_few_or_unrelated_runs_give_no_suggestion() -> None:
    assert suggests_nothing(trials(DELETE, failed=2, succeeded=2))
    assert suggests_nothing(trials(DELETE, failed=8, succeeded=0))
    assert suggests_nothing([*trials(DELETE), run("good-x", Outcome.SUCCEEDED, *PATH, DELETE)])
    runs = trials(DELETE, succeeded=0)
    runs += [run(f"o-{n}", Outcome.SUCCEEDED, *PATH, task="8") for n in range(4)]
    runs += [run(f"u-{n}", Outcome.UNKNOWN, *PATH) for n in range(4)]
    assert suggests_nothing(runs)
    assert TwinsJudge(runs).summary == "comparing 8 runs of 2 tasks"
    assert "nothing to compare" in TwinsJudge(runs[-4:]).summary


@pytest.mark.slow
def test_planted_steps_are_found_and_random_outcomes_give_few_suggestions() -> None:
    exact = near = planted = 0
    for seed in range(40):
        trials_of_seed = planted_trials(Random(f"test {seed}"))
        shared = TwinsJudge(trials_of_seed.runs).shared_step_by_trace
        planted += len(trials_of_seed.planted)
        for trace_id, index in trials_of_seed.planted.items():
            step = shared.get(trace_id)
            exact += step is not None and step.index == index
            near += step is not None and abs(step.index - index) <= 3
    assert planted > 200
    assert exact >= 0.8 * planted
    assert near >= 0.95 * planted
    randoms = [Random(f"test {seed}") for seed in range(60)]
    suggestions = sum(
        bool(TwinsJudge(aimless_trials(random, 12).runs).shared_step_by_trace) for random in randoms
    )
    assert suggestions <= 12
    runs = long_trials(Random(1), 40, 250).runs
    assert sum(map(len, runs)) > 10_000
    assert TwinsJudge(runs).summary == "comparing 40 runs of 1 task"
