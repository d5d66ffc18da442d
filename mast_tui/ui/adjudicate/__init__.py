"""The screen on which an adjudicator resolves the conflicts between annotators."""
