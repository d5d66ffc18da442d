"""A run over many traces: asking about each, keeping what comes, going on where it broke off."""
