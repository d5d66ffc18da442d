"""Lists of chat messages of any program."""
