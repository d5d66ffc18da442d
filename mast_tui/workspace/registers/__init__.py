"""The tables of a workspace beside events."""
