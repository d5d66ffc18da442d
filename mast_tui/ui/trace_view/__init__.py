"""A trace on screen, as annotating, adjudicating and reading show it."""
