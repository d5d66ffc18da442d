"""A program that labels: ``python -m tests.workspace.writer FILE NAME local|remote [COUNT]``.

Prints the id of each label once it is on disk; without a count until it is killed. With ``remote``
it treats the file as one on a network.
"""

from __future__ import annotations

import itertools
import sys
from unittest.mock import patch

from mast_tui.workspace import Workspace, sqlite_file
from mast_tui.workspace.events.types import LabelAdded
from tests.workspace.build import event, label, start_pass


def main(path: str, name: str, location: str, count: str = "") -> None:
    with patch.object(sqlite_file, "is_on_network", lambda _: location == "remote"):
        workspace = Workspace.open(path)
    start_pass(workspace, annotator=name)
    for _ in range(int(count)) if count else itertools.count():
        added = label(workspace, annotator=name)
        workspace.append([event(LabelAdded(added), annotator=name)])
        print(added.id, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
