"""Pages to hand over: one run with its labels as a file to read, which can be imported again."""
