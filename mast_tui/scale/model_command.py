"""``mast-tui judge --out`` with a model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from mast_tui.cli.judge.llm import build_setup, dry_run, with_examples
from mast_tui.cli.shared.common import load_taxonomy_or_mast, say
from mast_tui.judges.llm.client.endpoint import check_address, find_key
from mast_tui.judges.llm.run.setup import sending_notice
from mast_tui.scale.command import print_shards, shard_folder, show_progress
from mast_tui.scale.judging import judge_into_shards
from mast_tui.scale.model_judging import JudgeUnitsByModel
from mast_tui.scale.shared_allowance import SPENT, shared_account

if TYPE_CHECKING:
    from mast_tui.cli.judge.command import JudgeRequest
    from mast_tui.cli.shared.workers import WorkerPool


def judge_with_model(request: JudgeRequest, pool: WorkerPool) -> int:
    """Judge traces by a model, write the findings to shards, and return the exit code.

    No workspace is needed; the answers of the model are stored beside the shards.

    Args:
        request: The options of the command.
        pool: The workers, and the progress bar.

    Raises:
        ShardsError: The folder cannot be used.
    """
    model = request.model
    folder = shard_folder(request)
    setup = build_setup(model, load_taxonomy_or_mast(request.common.taxonomy))
    setup = with_examples(setup, model, None)
    check_address(setup.base_url, allow_http=setup.allow_http)
    if model.dry_run:
        return dry_run(request, setup, None)
    find_key(setup.base_url, setup.key_variable)
    if not setup.stays_here:
        say(sending_notice(setup))
    workers = pool.workers
    concurrency = setup.concurrency // (1 if workers is None else workers.count)
    with shared_account(setup, folder, "127.0.0.1" if workers is None else workers.host) as account:
        run = judge_into_shards(
            JudgeUnitsByModel(
                replace(setup, concurrency=max(1, concurrency)),
                folder,
                None if account is None else account.address,
            ),
            setup.taxonomy,
            request.paths,
            folder,
            workers,
            files=request.shard_files,
            tell=partial(show_progress, pool),
        )
        if account is not None and (account.spent or run.stopped is None):
            folder.write(SPENT, b"{}")  # the run is over; the next one has an allowance of its own
    return print_shards(request, run, folder.address, setup.taxonomy, setup.prices)
