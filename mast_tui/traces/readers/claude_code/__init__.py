"""Claude Code: sessions with their sub-agents, and its stream."""
