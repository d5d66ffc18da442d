"""Where a person's configuration lies: keys of their own, and their name."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from mast_tui.ui.actions import ACTIONS, Keymap


@dataclass(frozen=True, slots=True)
class Configuration:
    """What ``config.toml`` says; ``problem`` is set where it could not be read."""

    annotator: str | None = None
    keys: Keymap = field(default_factory=dict)
    problem: str | None = None


def configuration_path() -> Path:
    """``config.toml`` in the user's configuration folder for mast_tui."""
    from platformdirs import user_config_path

    return user_config_path("mast-tui") / "config.toml"


def read_configuration(path: Path) -> Configuration:
    """Read the configuration; a missing file is an empty one, a wrong one says what is wrong."""
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Configuration()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return Configuration(problem=f"{path}: {error}; our own keys are used")
    annotator = data.get("annotator")
    keys: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    table = data.get("keys", {})
    known = {action.id for action in ACTIONS}
    for name, value in table.items() if isinstance(table, dict) else ():
        pressed = [value] if isinstance(value, str) else value
        if name in known and isinstance(pressed, list) and all(isinstance(k, str) for k in pressed):
            keys[name] = tuple(pressed)
        else:
            unknown.append(str(name))
    problem = f"{path}: no such action: {', '.join(unknown)}" if unknown else None
    return Configuration(annotator if isinstance(annotator, str) else None, keys, problem)
