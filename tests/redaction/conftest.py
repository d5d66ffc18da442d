"""The command line, for tests of what commands mask."""

from __future__ import annotations

from tests.cli.conftest import cli as cli
