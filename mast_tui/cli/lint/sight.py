"""Whether the one who asks may be told what a judge finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mast_tui.cli.shared.asking import Asker
from mast_tui.cli.shared.common import open_workspace
from mast_tui.errors import SessionError
from mast_tui.workspace.paths import find_workspace

if TYPE_CHECKING:
    from mast_tui.taxonomy.model import Taxonomy


def checked_may_see(
    workspace: str | None, annotator: str | None, taxonomy: Taxonomy, *, assisted: bool
) -> None:
    """Refuse to tell findings to somebody who labels here without them.

    Where there is no workspace there is nobody to refuse it to, and none is made.

    Args:
        workspace: The value of ``--workspace``.
        annotator: The value of ``--annotator``.
        taxonomy: Under which they label.
        assisted: Stop to work blind, which is recorded.

    Raises:
        SessionError: They work blind, or have traces without suggestions.
    """
    if workspace is None and not find_workspace(None).exists():
        return
    place = open_workspace(workspace, create=False)
    try:
        hidden = Asker(annotator, False, assisted).hides_judges(place, taxonomy)
    finally:
        place.close()
    if hidden:
        raise SessionError(
            "what judges find is hidden from you, as you work blind here or have traces without "
            "suggestions; work outside of this folder, or leave blind with --assisted"
        )
