"""Reading agent traces: formats become spans in reading order."""
