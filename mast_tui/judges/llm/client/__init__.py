"""Asking a server that speaks the OpenAI API: keys, pace, allowance, errors, replies."""
