"""``mast-tui judge --write-batch`` and ``--read-batch``: what they open, and what they say."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from mast_tui.judges.llm.run.batch_files import AnswerFiles, Batch, RequestFiles

if TYPE_CHECKING:
    from mast_tui.cli.judge.setup import SetupRequest
    from mast_tui.judges.llm.run.running import ModelRunSummary
    from mast_tui.judges.llm.run.setup import Setup
    from mast_tui.judges.llm.run.vendor_batches import VendorBatches
    from mast_tui.workspace import Workspace


def opened_batch(
    request: SetupRequest, setup: Setup, place: Workspace, files: ExitStack, *, again: bool
) -> Batch:
    """Open the files that are named.

    Args:
        request: Names them.
        setup: Who is asked what.
        place: What was answered before.
        files: Closes them; what was not finished is taken away.
        again: Whether everything is asked anew.

    Raises:
        BatchFileError: A file cannot be used.
    """
    answers = AnswerFiles(request.read_batch, files) if request.read_batch else None
    requests = None
    if request.write_batch is not None:
        requests = RequestFiles(request.write_batch)
        files.callback(requests.give_up)
    return Batch(setup, place, again=again, answers=answers, requests=requests)


def batch_document(
    batch: Batch, summary: ModelRunSummary, vendor: VendorBatches | None = None
) -> dict[str, Any]:
    """Tell what went through files.

    Args:
        batch: The files.
        summary: What came of the run.
        vendor: Who carried them, where it was not a person.
    """
    answers, requests = batch.answers, batch.requests
    return {
        "written": 0 if requests is None or vendor is not None else requests.requests,
        "files": [str(path) for path in requests.paths] if requests and vendor is None else [],
        "submitted": 0 if vendor is None else vendor.submitted,
        "batches": None if vendor is None else vendor.ids,
        "answers": 0 if answers is None else len(answers),
        "read": batch.news.read,
        "troubles": dict(batch.news.troubles.most_common()),
        "strangers": batch.strangers(),
        "broken": 0 if answers is None else answers.broken,
        "waiting": summary.waiting,
    }
