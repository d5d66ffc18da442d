"""The user's division of the annotate screen, stored in the user's state folder."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Final, NamedTuple

from platformdirs import user_state_path

from mast_tui.traces.io.private_files import make_private

MIN_SHARE: Final = 20
MAX_SHARE: Final = 80
DEFAULT_SHARE: Final = 40


class ViewSettings(NamedTuple):
    """The division of the annotate screen.

    ``text_share`` is the share of the span's text in the height that it divides with the timeline,
    in per cent. ``time_bar`` says whether the timeline shows its time bar.
    """

    text_share: int = DEFAULT_SHARE
    time_bar: bool = True

    def remember(self) -> None:
        """Store the settings for the next start; an error while writing is ignored."""
        with contextlib.suppress(OSError):
            path = _file()
            make_private(path.parent)
            path.write_text(json.dumps(self._asdict()), "utf-8")


def remembered_settings() -> ViewSettings:
    """Return the stored settings, or the defaults for all that is missing or invalid."""
    defaults = ViewSettings()
    try:
        stored = json.loads(_file().read_text("utf-8"))
    except (OSError, ValueError):
        return defaults
    if not isinstance(stored, dict):
        return defaults
    valid = {
        name: stored[name]
        for name, value in defaults._asdict().items()
        if type(stored.get(name)) is type(value)
    }
    settings = ViewSettings(**valid)
    if not MIN_SHARE <= settings.text_share <= MAX_SHARE:
        return ViewSettings(time_bar=settings.time_bar)
    return settings


def _file() -> Path:
    return user_state_path("mast-tui") / "view.json"
