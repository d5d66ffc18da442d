"""Write runs of an invented agent, some of which repeat a step, for a practice experiment.

    python scripts/practice_runs.py FOLDER [--rate R] [--success S]
        [--tasks N] [--runs K] [--seed S]

Each task has a name and K runs. In a share R of the runs the agent makes one call four times with
the same answer, which the rules find as 1.3; the share differs by task. The draw is seeded.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SPREAD = 0.8
"""The standard deviation over tasks of the logits of both rates."""


def call(number: int, command: str, answer: str) -> list[dict[str, Any]]:
    """Return a call of the shell and its answer as messages.

    Args:
        number: The number of the call in its run.
        command: The command of the call.
        answer: The output of the command.
    """
    function = {"name": "shell", "arguments": json.dumps({"command": command})}
    tool_call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": f"I look at {command}.", "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": answer},
    ]


def run_of(task: int, trial: int, seed: int, *, repeats: bool, succeeds: bool) -> dict[str, Any]:
    """Return one run.

    Args:
        task: The number of its task.
        trial: The number of the run.
        seed: The seed of its folder, which makes it differ from runs of other folders.
        repeats: Whether the agent repeats a step.
        succeeds: Whether it finds the cause.
    """
    commands = [f"kubectl get pods -n shop-{task}", f"kubectl logs web-{task}"]
    if repeats:
        commands[1:1] = [f"kubectl describe pod web-{task}"] * 4
    commands.append(f"kubectl get events -n shop-{task} --since run-{seed}-{trial}")
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the cause."}]
    for number, command in enumerate(commands):
        messages += call(number, command, f"output of {command}")
    messages.append({"role": "assistant", "content": "The cause is the memory limit."})
    return {
        "messages": messages,
        "benchmark": "practice",
        "model": "practice-1",
        "task_id": f"T{task}",
        "trial": trial,
        "outcome": "succeeded" if succeeds else "failed",
    }


def write_runs(
    folder: Path, *, rate: float, success: float, tasks: int, runs: int, seed: int
) -> None:
    """Write the runs of all tasks, a file each.

    Args:
        folder: The folder, created if necessary.
        rate: The share of runs of a task of mean difficulty that repeat a step.
        success: The share of runs that succeed.
        tasks: The number of tasks.
        runs: The number of runs of each.
        seed: The seed of the draws.
    """
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(seed)
    for task in range(1, tasks + 1):
        # A task is equally hard in every folder.
        hard = random.Random(task).gauss(0, SPREAD)
        for trial in range(1, runs + 1):
            document = run_of(
                task,
                trial,
                seed,
                repeats=generator.random() < _shifted(rate, hard),
                succeeds=generator.random() < _shifted(success, -hard),
            )
            (folder / f"T{task}-{trial}.json").write_text(json.dumps(document), "utf-8")


def _shifted(rate: float, logits: float) -> float:
    return 1 / (1 + math.exp(-(math.log(rate / (1 - rate)) + logits)))


def main(arguments: Sequence[str]) -> int:
    """Write the runs into a folder.

    Args:
        arguments: The arguments of the command.
    """
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rate", type=float, default=0.4)
    parser.add_argument("--success", type=float, default=0.5)
    parser.add_argument("--tasks", type=int, default=60)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = vars(parser.parse_args(arguments))
    write_runs(options.pop("folder"), **options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
