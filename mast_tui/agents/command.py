"""``mast-tui mcp``: an MCP server over stdio, with which an agent reads and labels traces."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import existing_workspace
from mast_tui.cli.shared.common import open_with_taxonomy, say
from mast_tui.cli.shared.options import OptionRule
from mast_tui.errors import MastError
from mast_tui.labels import AGENT_PREFIX, check_unlike, checked_agent
from mast_tui.session import trace_masks
from mast_tui.traces.library import scan
from mast_tui.traces.model import Trace
from mast_tui.workspace.paths import is_url

if TYPE_CHECKING:
    from mast_tui.agents.desk import AgentDesk

_BLIND: Final = "agents always work blind"
_CONFIGURATION_FILES: Final = {
    "claude-code": ".mcp.json",
    "codex": ".codex/config.toml",
    "cursor": ".cursor/mcp.json",
}
"""The file of a project in which each coding agent looks for MCP servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpRequest:
    """The options of ``mast-tui mcp``."""

    paths: tuple[Path, ...] = options.paths(exist=True)
    configuration: str | None = options.option(
        "--print-config",
        type=click.Choice([*_CONFIGURATION_FILES]),
        help="Print the configuration with which this coding agent starts the server, and the name "
        "of its file.",
    )
    skill: bool = options.option(
        "--print-skill",
        is_flag=True,
        help="Print the skill file, which tells an agent how to annotate a trace.",
    )
    common: CommonOptions = options.common(blind=_BLIND, assisted=_BLIND)


_RULES: Final = (
    OptionRule[McpRequest](
        "give the agent's name: --annotator agent:NAME",
        when=lambda request: not request.skill and not request.common.annotator,
    ),
    OptionRule[McpRequest](
        "--print-config and --print-skill both print; give one of them",
        options=("--print-config",),
        excludes=("--print-skill",),
    ),
)


@click.command()
@options.takes(McpRequest, _RULES)
def mcp_command(request: McpRequest) -> None:
    """Serve traces to an agent, which reads and labels them (MCP).

    The MCP server uses stdin and stdout. The agent is an annotator of its own kind, agent:NAME. It
    works blind, sees only its own labels until it has finished a trace, and its labels never become
    gold. Without PATH it labels the traces of the workspace. Needs mast-tui[mcp].

    Example: mast-tui mcp runs/ --annotator agent:claude
    """
    if request.skill:
        click.echo(_server_module().skill_text(), nl=False)
        return
    if request.common.workspace is not None and is_url(request.common.workspace):
        raise MastError(
            "agents label only in workspace files; give --workspace PATH, and import its "
            "labels into the server"
        )
    name = _agent_name(request.common.annotator or "")
    if request.configuration is not None:
        say(f"for {_CONFIGURATION_FILES[request.configuration]}:")
        click.echo(_agent_configuration(request, name), nl=False)
        return
    server = _server_module()
    server.serve_stdio(_open_desk(request, name))


def _open_desk(request: McpRequest, name: str) -> AgentDesk:
    """Open the workspace and the traces for an agent.

    Raises:
        MastError: The name resembles another annotator's, or there is no trace.
    """
    # Read first: without a trace, no workspace is created.
    traces = _read_traces(request.paths or _existing_paths(request.common))
    workspace, taxonomy = open_with_taxonomy(request.common, create=True)
    annotators = [info.name for info in workspace.annotators()]
    if name not in annotators:
        check_unlike(name, annotators)
    masks = trace_masks(workspace.study(taxonomy.ref))
    desk: AgentDesk = import_module("mast_tui.agents.desk").AgentDesk(
        workspace, taxonomy, name, [trace.with_masks(masks) for trace in traces]
    )
    return desk


def _agent_name(name: str) -> str:
    """Return the name of an agent with its prefix ``agent:``."""
    return checked_agent(name if name.startswith(AGENT_PREFIX) else AGENT_PREFIX + name)


def _server_module() -> Any:
    """Import the server.

    Raises:
        MastError: A library of the extra ``mcp`` is not installed.
    """
    try:
        return import_module("mast_tui.agents.server")
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("mast_tui"):
            raise
        raise MastError(
            f"{error.name} is missing; install it with: pip install 'mast-tui[mcp]'"
        ) from error


def _existing_paths(common: CommonOptions) -> list[Path]:
    """Return the existing files of the workspace's traces, each once; none without a workspace."""
    workspace = existing_workspace(common)
    if workspace is None:
        return []
    with closing(workspace):
        paths = {record.path: None for record in workspace.traces() if record.path is not None}
    return [path for path in paths if path.exists()]


def _read_traces(paths: Iterable[Path]) -> list[Trace]:
    """Return the traces under the paths, and report unreadable files on stderr.

    Raises:
        MastError: There is no trace.
    """
    traces: list[Trace] = []
    for report in scan(paths, keep_spans=False):
        traces.extend(report.traces)
        if report.failed is not None:
            say(f"mast-tui mcp: {report.path}: {report.failed}")
    if not traces:
        raise MastError("there is no trace to annotate; give a file or folder of traces")
    return traces


def _agent_configuration(request: McpRequest, name: str) -> str:
    """Return the configuration that makes a coding agent start this server.

    Its command repeats the paths and options of the current command.
    """
    command = shutil.which("mast-tui") or str(Path(sys.argv[0]).absolute())
    arguments = ["mcp", *(str(path.absolute()) for path in request.paths), "--annotator", name]
    if request.common.workspace is not None:
        arguments += ["--workspace", str(Path(request.common.workspace).absolute())]
    if request.common.taxonomy is not None:
        taxonomy = Path(request.common.taxonomy)
        arguments += ["--taxonomy", str(taxonomy.absolute() if taxonomy.exists() else taxonomy)]
    server: dict[str, Any] = {"command": command, "args": arguments}
    if request.configuration == "codex":
        # A JSON string or list of strings is TOML too.
        lines = [
            f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in server.items()
        ]
        return "\n".join(["[mcp_servers.mast-tui]", *lines, ""])
    if request.configuration == "claude-code":
        server = {"type": "stdio", **server}
    return json.dumps({"mcpServers": {"mast-tui": server}}, indent=2) + "\n"
