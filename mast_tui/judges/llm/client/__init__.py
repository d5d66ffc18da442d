"""Requests to a server with the OpenAI API: keys, pace, allowance, errors and replies."""
