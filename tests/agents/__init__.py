"""Agents as annotators: their kind, the MCP server, and what it withstands."""
