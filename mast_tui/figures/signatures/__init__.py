"""The figures of failure signatures: modes in failed and in successful traces."""
