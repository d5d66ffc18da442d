"""``mast-tui judge --out`` with a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.judge.llm import dry_run
from mast_tui.cli.judge.setup import SetupRequest, made_setup, with_examples
from mast_tui.cli.shared.common import load_chosen_taxonomy, say
from mast_tui.judges.llm.client.hosts import check_address
from mast_tui.judges.llm.client.keys import find_key
from mast_tui.judges.llm.run.consent import what_is_sent
from mast_tui.scale.command import print_shards, show_progress
from mast_tui.scale.folder import ShardFolder
from mast_tui.scale.judging import judge_into_shards
from mast_tui.scale.model_judging import JudgeUnitsByModel, outdated_shards
from mast_tui.scale.shared_allowance import SPENT, shared

if TYPE_CHECKING:
    from mast_tui.cli.judge.options import JudgeCommand
    from mast_tui.cli.shared.workers import WorkerPool

_NEEDS_WORKSPACE: Final = ("hold_out", "record", "replay", "batch", "write_batch", "read_batch")
"""Options that do not go together with ``--out``."""


def judge_with_model(
    command: JudgeCommand,
    options: Mapping[str, Any],
    out: str,
    files: int | None,
    pool: WorkerPool,
) -> int:
    """Have a model judge into shards, which need no workspace, and return the exit code.

    Args:
        command: The options of the command.
        options: The options of the model, by name.
        out: The folder or URL of the shards; the answers are kept beside them.
        files: How many files a shard has on average; None leaves it to their number.
        pool: The workers, and the bar of progress.

    Raises:
        click.UsageError: An option needs a workspace, or carries requests in another way.
        ShardsError: The folder cannot be used.
    """
    folder = ShardFolder(out)
    request = SetupRequest.of(options)
    for name in _NEEDS_WORKSPACE:
        if getattr(request, name):
            raise click.UsageError(f"--{name.replace('_', '-')} does not go together with --out")
    if request.few_shot == "gold":
        raise click.UsageError("--few-shot gold needs a workspace; with --out take built-in")
    setup = made_setup(request, load_chosen_taxonomy(command.common.taxonomy))
    setup = with_examples(setup, request, None)
    check_address(setup.base_url, allow_http=setup.allow_http)
    if request.dry_run:
        return dry_run(command, setup, None)
    find_key(setup.base_url, setup.key_variable)
    if not setup.stays_here:
        say(what_is_sent(setup))
    workers = pool.workers
    at_once = setup.concurrency // (1 if workers is None else workers.count)
    with shared(setup, folder, "127.0.0.1" if workers is None else workers.host) as books:
        run = judge_into_shards(
            setup.judge,
            setup.prompt.modes,
            JudgeUnitsByModel(
                replace(setup, concurrency=max(1, at_once)),
                folder,
                None if books is None else books.address,
            ),
            setup.taxonomy,
            command.paths,
            folder,
            workers,
            files=files,
            tell=partial(show_progress, pool),
            outdated=partial(outdated_shards, folder),
        )
        if books is not None and (books.spent or run.stopped is None):
            folder.write(SPENT, b"{}")  # the run is over; the next one has an allowance of its own
    return print_shards(command, run, folder.address, setup.taxonomy)
