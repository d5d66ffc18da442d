"""A workspace's runs as the arms of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mast_tui.errors import WorkspaceError
from mast_tui.figures.experiment import Experiment, Values
from mast_tui.figures.signatures.bill import SpentOf
from mast_tui.figures.signatures.model import NO_VALUE, OPEN, SignatureInput
from mast_tui.figures.source.verdicts import LabelledTraces

if TYPE_CHECKING:
    from mast_tui.configuration import Prices
    from mast_tui.workspace import Workspace

ARM: Final = "arm"
"""Instead of a field: arms are named by the paths of their runs."""


def runs_under(
    workspace: Workspace, inputs: SignatureInput, paths: Mapping[str, Sequence[Path]]
) -> SignatureInput:
    """Return the runs whose files are in some folders, grouped by the name of the arm.

    Args:
        workspace: The workspace.
        inputs: All runs.
        paths: Files and folders by the name of the arm.

    Raises:
        WorkspaceError: An arm has no run in its folders, or two have files in common.
    """
    folders = [[path.absolute() for path in arm_paths] for arm_paths in paths.values()]

    def arms_of_traces(rows: Iterator[tuple[Any, ...]]) -> dict[str, int]:
        """Return the number of the first arm whose folder holds the trace, by trace."""
        arms = {}
        for trace_id, stored in rows:
            path = workspace.resolve_trace_path(stored).absolute()
            for number, arm_folders in enumerate(folders):
                if any(path == folder or folder in path.parents for folder in arm_folders):
                    arms[trace_id] = number
                    break
        return arms

    for first, second in combinations(paths, 2):
        if _have_files_in_common(paths[first], paths[second]):
            raise WorkspaceError(
                f"{first} and {second} have files in common; a run belongs to one arm only"
            )
    arms = workspace.read_columns("traces", ("id", "path"), arms_of_traces, not_null="path")
    group = np.array([arms.get(trace, -1) for trace in inputs.traces], dtype=np.int64)
    for number, (name, arm_paths) in enumerate(paths.items()):
        if not (group == number).any():
            paths_text = ", ".join(map(str, arm_paths))
            raise WorkspaceError(
                f"{name}: no run of this workspace is in {paths_text}; label or judge these runs "
                "first"
            )
    names = tuple(paths)
    in_an_arm = group >= 0
    return replace(
        inputs,
        by=ARM,
        group=np.maximum(group, 0),
        group_names=names,
        group_parts=tuple((name,) for name in names),
    ).only(in_an_arm)


def _have_files_in_common(first: Sequence[Path], second: Sequence[Path]) -> bool:
    """Return whether a file or folder of one arm is, or contains, one of the other arm."""
    pairs = product(*([path.absolute() for path in side] for side in (first, second)))
    return any(path.is_relative_to(other) or other.is_relative_to(path) for path, other in pairs)


def experiment_of(
    inputs: SignatureInput,
    *,
    baseline: str | None = None,
    tested: tuple[str, ...] = (),
    judge: LabelledTraces | None = None,
    spent_of: SpentOf | None = None,
    prices: Mapping[str, Prices] | None = None,
    change: float = 0.2,
) -> Experiment:
    """Make an experiment of runs whose groups are its arms; runs of no arm are left out.

    Args:
        inputs: The runs.
        baseline: The arm that the others are compared with; by default the first arm.
        tested: The codes of the modes named beforehand.
        judge: The verdicts of a judge on all runs, if ``inputs`` has those of people on a part.
        spent_of: The function that returns the amounts that a run used; None for no amounts.
        prices: The prices of models by name.
        change: The change of a rate that planning is about.

    Raises:
        WorkspaceError: There are not two arms, or none of them is the baseline.
    """
    named_by_paths = inputs.by == ARM
    has_value = np.array(
        [named_by_paths or name != NO_VALUE for name in inputs.group_names], dtype=bool
    )
    run_count = len(inputs.traces)
    if run_count:
        inputs = inputs.only(has_value[inputs.group])
    if not len(inputs.traces) or len(inputs.group_names) < 2:
        names = ", ".join(inputs.group_names) or "none"
        raise WorkspaceError(
            f"an experiment has two arms or more; by {inputs.by} there is {names}. Name the field "
            "that differs with --arms, or the runs of each with --arm NAME=PATH"
        )
    baseline = inputs.group_names[0] if baseline is None else baseline
    if baseline not in inputs.group_names:
        names = ", ".join(inputs.group_names)
        raise WorkspaceError(f"no arm is named {baseline!r}; by {inputs.by} there are: {names}")
    arm_order = [baseline, *(name for name in inputs.group_names if name != baseline)]
    positions = np.array([arm_order.index(name) for name in inputs.group_names])
    parts = dict(zip(inputs.group_names, inputs.group_parts, strict=False))
    inputs = replace(
        inputs,
        group=positions[inputs.group],
        group_names=tuple(arm_order),
        group_parts=tuple(parts[name] for name in arm_order) if parts else (),
    )
    codes = [mode.code for mode in inputs.modes]
    for code in tested:
        if code not in codes:
            raise WorkspaceError(f"there is no mode {code!r}; there are: {', '.join(codes)}")
    return Experiment(
        inputs,
        baseline,
        tested,
        None if judge is None else _verdicts_in_order_of(judge, inputs.traces),
        {} if spent_of is None else _amounts_of_runs(inputs, spent_of, prices or {}),
        change,
        run_count - len(inputs.traces),
    )


def _verdicts_in_order_of(
    judge: LabelledTraces, traces: Sequence[str]
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the verdicts of a judge in the order of the runs."""
    row_by_trace = {trace: row for row, trace in enumerate(judge.traces)}
    verdicts = np.full((len(traces), judge.verdicts.shape[1]), OPEN, dtype=np.uint8)
    for row, trace in enumerate(traces):
        if trace in row_by_trace:
            verdicts[row] = judge.verdicts[row_by_trace[trace]]
    return verdicts


def _amounts_of_runs(
    inputs: SignatureInput, spent_of: SpentOf, prices: Mapping[str, Prices]
) -> dict[str, Values]:
    """Return the tokens, minutes and money of each run, NaN if unknown, without empty amounts."""
    amounts = {name: np.full(len(inputs.traces), np.nan) for name in ("tokens", "minutes", "money")}
    for row, trace in enumerate(inputs.traces):
        spent = spent_of(trace)
        if spent is None:
            continue
        if spent.minutes is not None:
            amounts["minutes"][row] = spent.minutes.sum()
        if spent.tokens is None:
            continue
        input_tokens, output_tokens = spent.tokens.sum(axis=0).tolist()
        amounts["tokens"][row] = input_tokens + output_tokens
        model = -1 if inputs.stratum is None else int(inputs.stratum[row])
        price = prices.get(inputs.stratum_names[model]) if model >= 0 else None
        if price is not None:
            amounts["money"][row] = price.cost(input_tokens, output_tokens)
    return {name: values for name, values in amounts.items() if not np.isnan(values).all()}
