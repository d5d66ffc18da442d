"""The MCP server: the tools of ``AgentDesk`` over the official SDK."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Final

import anyio
import msgspec
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ToolDescription

from mast_tui import __version__
from mast_tui.agents.desk import TOOLS, AgentDesk, Tool
from mast_tui.errors import ChangedMeanwhile, MastError
from mast_tui.safe_text import one_line

NAME: Final = "mast-tui"

MOST_ARGUMENT_BYTES: Final = 64 * 1024
"""The most bytes of the arguments of one call, as JSON."""


def skill_text() -> str:
    """Return the skill file, which tells an agent how to annotate a trace."""
    return files("mast_tui.agents").joinpath("SKILL.md").read_text("utf-8")


def server_of(desk: AgentDesk) -> Server[Any]:
    """Make an MCP server with the tools of an agent, for any transport of the SDK."""
    tools = {tool.name: tool for tool in TOOLS}
    descriptions = [_tool_description(tool) for tool in TOOLS]

    async def _list_tools(
        _context: ServerRequestContext[Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=descriptions)

    async def _call_tool(
        _context: ServerRequestContext[Any], params: CallToolRequestParams
    ) -> CallToolResult:
        """Call a tool. Calls do not overlap, because the methods of the desk never wait."""
        tool = tools.get(params.name)
        if tool is None:
            return _refusal_result(f"there is no tool {one_line(params.name, 60)!r}")
        return _call_result(desk, tool, params.arguments or {})

    return Server(
        NAME,
        version=__version__,
        # without the front matter of the skill file
        instructions=skill_text().split("\n---\n", 1)[1].strip(),
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )


def serve_stdio(desk: AgentDesk) -> None:
    """Serve one client over stdin and stdout until it closes the connection."""
    server = server_of(desk)

    async def serve() -> None:
        async with stdio_server() as (read_stream, write_stream):
            await server.run(read_stream, write_stream, server.create_initialization_options())

    anyio.run(serve)


def _call_result(desk: AgentDesk, tool: Tool, arguments: Mapping[str, Any]) -> CallToolResult:
    """Carry out a call, and return its answer, or a refusal with the error message."""
    try:
        if len(msgspec.json.encode(arguments)) > MOST_ARGUMENT_BYTES:
            return _refusal_result(f"the arguments have more than {MOST_ARGUMENT_BYTES} bytes")
        request = msgspec.convert(arguments, tool.request)
        answer: Callable[[AgentDesk, Any], Mapping[str, Any]] = tool.answer
        document = answer(desk, request)
    except msgspec.ValidationError as error:
        return _refusal_result(f"{tool.name}: {error}")
    except UnicodeEncodeError:
        return _refusal_result("the arguments contain half a character (a lone surrogate)")
    except ChangedMeanwhile:
        return _refusal_result("the work on this trace has changed; call again")
    except MastError as error:
        return _refusal_result(str(error))
    except OSError as error:
        return _refusal_result(f"the trace can no longer be read: {error.strerror}")
    return CallToolResult(content=[_json_content(document)])


def _refusal_result(message: str) -> CallToolResult:
    return CallToolResult(
        content=[_json_content({"refused": one_line(message, 1000)})], is_error=True
    )


def _json_content(document: Mapping[str, Any]) -> TextContent:
    return TextContent(type="text", text=msgspec.json.encode(document).decode())


def _tool_description(tool: Tool) -> ToolDescription:
    """Return the description of a tool, with the JSON schema of its arguments."""
    _, components = msgspec.json.schema_components([tool.request])
    return ToolDescription(
        name=tool.name,
        description=" ".join((tool.request.__doc__ or "").split()),
        input_schema=components[tool.request.__name__],
        annotations=ToolAnnotations(
            read_only_hint=not tool.writes, destructive_hint=False, open_world_hint=False
        ),
    )
