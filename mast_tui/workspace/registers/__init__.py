"""The tables of a workspace other than events."""
