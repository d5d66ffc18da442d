"""The container files: they use versions, extras and options that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml

from tests.test_documented_commands import called

ROOT: Final = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    compose: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return compose["services"]


def test_the_image_has_a_python_and_extras_that_the_project_knows() -> None:
    image = (ROOT / "Dockerfile").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (version,) = re.findall(r"^FROM python:(3\.\d+)-slim$", image, re.MULTILINE)
    assert f"Programming Language :: Python :: {version}" in project["classifiers"]
    (extras,) = re.findall(r"'/tmp/source\[(.*?)\]'", image)
    assert set(extras.split(",")) <= project["optional-dependencies"].keys()
    (entry,) = re.findall(r'^ENTRYPOINT \["(.*?)"\]$', image, re.MULTILINE)
    assert entry in project["scripts"]


def test_services_use_known_options_and_the_web_port_needs_a_token(
    services: dict[str, dict[str, Any]],
) -> None:
    for name in ("app", "web"):
        command, arguments = called(services[name]["command"])
        options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
        spellings = {spelling for option in options for spelling in option.opts}
        assert {argument for argument in arguments if argument.startswith("-")} <= spellings
        assert arguments[-1] == services[name]["volumes"][0].rpartition(":")[2]
    assert services["web"]["ports"] == ["127.0.0.1:8000:8000"]
    assert "--token" in services["web"]["command"]
