"""The notice of what a judge sends to a server, and the record that the user has seen it."""

from __future__ import annotations

from typing import Final

from mast_tui.judges.llm.run.setup import Setup
from mast_tui.safe_text import one_line
from mast_tui.workspace import Workspace

_SETTING: Final = "judge.told"


def what_is_sent(setup: Setup) -> str:
    """Write what is sent to the server, the redaction, and the source of the key."""
    where = one_line(setup.host, 80)
    if setup.stays_here:
        where += ", this machine"
    return (
        f"The texts of the traces, their tasks{_artefacts(setup)} and the names of agents and "
        f"tools are sent to {where}; labels, notes, outcomes and file names are not. "
        f"{what_is_taken_out(setup)} The key comes from {setup.key_variable}."
    )


def what_is_written(setup: Setup) -> str:
    """Write what a file of requests contains, and the redaction."""
    return (
        f"Nothing is sent: the file holds the texts of the traces, their tasks{_artefacts(setup)} "
        "and the names of agents and tools, for whoever it is given to; labels, notes, outcomes "
        f"and file names are not in it. {what_is_taken_out(setup)}"
    )


def _artefacts(setup: Setup) -> str:
    """Return what is sent of the results of a run, for an enumeration."""
    return ", final patches, test results" if setup.parameters.artefacts else ""


def what_is_taken_out(setup: Setup) -> str:
    """Write what the redaction removes, in one sentence."""
    names = list(dict.fromkeys(one_line(rule.name, 40) for rule in setup.redaction.rules))
    if not names:
        return "Nothing is taken out of them before (--no-redact)."
    return f"Taken out before, as far as patterns find it: {', '.join(names)}."


def is_told(workspace: Workspace, setup: Setup) -> bool:
    """Check whether no notice is needed: the server is on this machine, or the user has seen it.

    Args:
        workspace: The workspace with the record.
        setup: The judge and its server.
    """
    return setup.stays_here or workspace.get_setting(_key(setup)) is not None


def note_told(workspace: Workspace, setup: Setup) -> None:
    """Record that the user has seen the notice for this host.

    Args:
        workspace: The workspace with the record.
        setup: The judge and its server.
    """
    workspace.set_setting(_key(setup), "yes")


def _key(setup: Setup) -> str:
    content = "+artefacts" if setup.parameters.artefacts else ""
    return f"{_SETTING}{content}:{setup.host}"
