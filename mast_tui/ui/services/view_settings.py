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
LOW_SHARE: Final = 27
"""The default share on a screen with fewer lines than ``TALL``."""

TALL: Final = 30


class ViewSettings(NamedTuple):
    """The division of the annotate screen.

    Attributes:
        text_share: The height of the span's text in per cent of the height of text and timeline;
            None if the user has not chosen it.
        time_bar: Whether the timeline shows its time bar.
    """

    text_share: int | None = None
    time_bar: bool = True

    def share(self, height: int) -> int:
        """Return the share of the text on a screen of ``height`` lines, in per cent."""
        if self.text_share is not None:
            return self.text_share
        return LOW_SHARE if height < TALL else DEFAULT_SHARE

    def remember(self) -> None:
        """Store the settings for the next start. Errors while writing are ignored."""
        with contextlib.suppress(OSError):
            path = _settings_path()
            make_private(path.parent)
            path.write_text(json.dumps(self._asdict()), "utf-8")


def remembered_settings() -> ViewSettings:
    """Return the stored settings, with defaults for missing or invalid ones."""
    try:
        document = json.loads(_settings_path().read_text("utf-8"))
    except (OSError, ValueError):
        return ViewSettings()
    if not isinstance(document, dict):
        return ViewSettings()
    share = document.get("text_share")
    time_bar = document.get("time_bar")
    is_valid_share = type(share) is int and MIN_SHARE <= share <= MAX_SHARE
    return ViewSettings(
        share if is_valid_share else None,
        time_bar if isinstance(time_bar, bool) else True,
    )


def _settings_path() -> Path:
    return user_state_path("mast-tui") / "view.json"
