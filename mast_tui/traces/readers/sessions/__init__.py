"""Sessions of coding agents that are read whole: one engine, and a description of each format.

A ``SessionFormat`` says how a format is recognised and how its records become pieces. To add a
format, define it in a module of this folder and add it to ``FORMATS``.
"""

from mast_tui.traces.readers.sessions.acp import ACP
from mast_tui.traces.readers.sessions.bedrock import BEDROCK_AGENTS
from mast_tui.traces.readers.sessions.crewai import CREWAI_EVENTS
from mast_tui.traces.readers.sessions.deepseek import DEEPSEEK_HARNESS
from mast_tui.traces.readers.sessions.documents import (
    ANTIGRAVITY,
    CLINE,
    DEVIN,
    FX,
    GEMINI,
    OPENCODE,
    WINDSURF,
)
from mast_tui.traces.readers.sessions.engine import SessionReader
from mast_tui.traces.readers.sessions.events import (
    CODEBUDDY,
    COPILOT,
    DROID_STREAM,
    KIMI,
    MCP,
    VSCODE_DEBUG_LOG,
)
from mast_tui.traces.readers.sessions.hooks import HOOKS
from mast_tui.traces.readers.sessions.messages import (
    BOT_FRAMEWORK,
    CLAUDE_LIST,
    CLAUDE_WEB,
    CURSOR,
    GOOSE,
    GROK,
    KIRO,
    STRANDS,
)
from mast_tui.traces.readers.sessions.streams import (
    AG_UI,
    CURSOR_STREAM,
    GEMINI_STREAM,
    MANAGED_AGENTS,
)
from mast_tui.traces.readers.sessions.trees import DROID, OPENCLAW_TELEMETRY, PI, QWEN

FORMATS = tuple(
    SessionReader(session_format)
    for session_format in (
        DEEPSEEK_HARNESS,
        HOOKS,
        CREWAI_EVENTS,
        BEDROCK_AGENTS,
        QWEN,
        PI,
        DROID,
        STRANDS,
        GOOSE,
        CURSOR,
        GROK,
        KIRO,
        CLAUDE_WEB,
        CLAUDE_LIST,
        KIMI,
        COPILOT,
        VSCODE_DEBUG_LOG,
        DROID_STREAM,
        GEMINI_STREAM,
        CURSOR_STREAM,
        MANAGED_AGENTS,
        AG_UI,
        ACP,
        MCP,
        GEMINI,
        OPENCODE,
        CLINE,
        ANTIGRAVITY,
        WINDSURF,
        OPENCLAW_TELEMETRY,
        BOT_FRAMEWORK,
        CODEBUDDY,
        DEVIN,
        FX,
    )
)
"""A reader for each format, in the order in which they are tried."""
