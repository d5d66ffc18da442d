"""Labels for other tools, papers and platforms."""
