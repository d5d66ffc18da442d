"""Runs that tools export as one JSON document, converted to lists of chat messages.

To add a format, define an ``ExportFormat`` in a module of this folder and add it to ``FORMATS``.
"""

from mast_tui.traces.readers.exports.agents import (
    AGENTS_RUN_STATE,
    AGENTSCOPE,
    BFCL,
    BROWSER_USE,
    CREW_OUTPUT,
    CREWAI,
    OWL,
    SMOLAGENTS,
    TAU2,
)
from mast_tui.traces.readers.exports.chats import (
    CHATGPT,
    CLAUDE_AI,
    DEEPSEEK,
    LIBRECHAT,
    OPEN_WEBUI,
    OPENAI_ASSISTANTS,
    SEMANTIC_KERNEL,
)
from mast_tui.traces.readers.exports.google import (
    ADK_EVALS,
    AI_STUDIO,
    GEMINI_INTERACTIONS,
    GEMINI_LIVE,
)
from mast_tui.traces.readers.exports.threads import (
    GROK_EXPORT,
    LETTA,
    LLAMA_INDEX,
    LLAMA_INDEX_EVENTS,
    LM_STUDIO,
    ZED,
)
from mast_tui.traces.readers.exports.vscode import VSCODE_CHAT, VSCODE_CHAT_REPLAY

FORMATS = (
    TAU2,
    BFCL,
    SMOLAGENTS,
    BROWSER_USE,
    CREWAI,
    CREW_OUTPUT,
    AGENTSCOPE,
    AGENTS_RUN_STATE,
    ADK_EVALS,
    OWL,
    CHATGPT,
    DEEPSEEK,
    OPEN_WEBUI,
    CLAUDE_AI,
    LIBRECHAT,
    SEMANTIC_KERNEL,
    OPENAI_ASSISTANTS,
    VSCODE_CHAT,
    VSCODE_CHAT_REPLAY,
    LM_STUDIO,
    ZED,
    LETTA,
    LLAMA_INDEX,
    LLAMA_INDEX_EVENTS,
    GROK_EXPORT,
    GEMINI_INTERACTIONS,
    GEMINI_LIVE,
    AI_STUDIO,
)
"""A reader for each format, in the order in which they are tried."""
