"""The notice of what a judge sends to a server, and the record that the user has seen it."""

from __future__ import annotations

from typing import Final

from mast_tui.judges.llm.run.setup import Setup
from mast_tui.safe_text import one_line
from mast_tui.workspace import Workspace

_SETTING: Final = "judge.told"


def what_is_sent(setup: Setup) -> str:
    """Return the notice of the texts that are sent, the redaction, and the source of the key."""
    receiver = one_line(setup.host, 80)
    if setup.stays_here:
        receiver += ", this machine"
    return (
        f"The texts of the traces, their tasks{_artefacts_phrase(setup)} and the names of agents "
        f"and tools are sent to {receiver}; labels, notes, outcomes and file names are not. "
        f"{redaction_notice(setup)} The key comes from {setup.key_variable}."
    )


def what_is_written(setup: Setup) -> str:
    """Return the notice of the texts in a file of requests, and of the redaction."""
    return (
        "Nothing is sent: the file holds the texts of the traces, their tasks"
        f"{_artefacts_phrase(setup)} and the names of agents and tools, for whoever it is given "
        f"to; labels, notes, outcomes and file names are not in it. {redaction_notice(setup)}"
    )


def _artefacts_phrase(setup: Setup) -> str:
    """Return the results of a run that are sent, as a part of an enumeration; may be empty."""
    return ", final patches, test results" if setup.parameters.artefacts else ""


def redaction_notice(setup: Setup) -> str:
    """Return a sentence on the secrets that the redaction removes."""
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
    return setup.stays_here or workspace.get_setting(_setting_name(setup)) is not None


def note_told(workspace: Workspace, setup: Setup) -> None:
    """Record that the user has seen the notice for this host.

    Args:
        workspace: The workspace with the record.
        setup: The judge and its server.
    """
    workspace.set_setting(_setting_name(setup), "yes")


def _setting_name(setup: Setup) -> str:
    content = "+artefacts" if setup.parameters.artefacts else ""
    return f"{_SETTING}{content}:{setup.host}"
