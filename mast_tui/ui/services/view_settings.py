"""How somebody has set the panes: kept in the user's state, beside no trace and no workspace."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Final, NamedTuple

from platformdirs import user_state_path

from mast_tui.traces.io.private_files import make_private

LEAST_SHARE: Final = 20
MOST_SHARE: Final = 80
SHARE: Final = 40


class ViewSettings(NamedTuple):
    """How the annotate screen is divided.

    ``text_share`` is how much of the height the text of a span has, in percent of what it shares
    with the timeline; ``time_bar`` says whether the timeline shows when a step was.
    """

    text_share: int = SHARE
    time_bar: bool = True

    def remember(self) -> None:
        """Keep it for the next start; where that cannot be written all is as before then."""
        with contextlib.suppress(OSError):
            path = _file()
            make_private(path.parent)
            path.write_text(json.dumps(self._asdict()), "utf-8")


def remembered_settings() -> ViewSettings:
    """Return what was remembered, or what is usual where nothing of use was."""
    usual = ViewSettings()
    try:
        found = json.loads(_file().read_text("utf-8"))
    except (OSError, ValueError):
        return usual
    if not isinstance(found, dict):
        return usual
    known = {
        name: found[name]
        for name, value in usual._asdict().items()
        if type(found.get(name)) is type(value)
    }
    settings = ViewSettings(**known)
    if not LEAST_SHARE <= settings.text_share <= MOST_SHARE:
        return ViewSettings(time_bar=settings.time_bar)
    return settings


def _file() -> Path:
    return user_state_path("mast-tui") / "view.json"
