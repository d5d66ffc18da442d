"""Agents as annotators: an MCP server with tools to read traces and label them."""
