"""Open coding: what was written down that no mode describes, and modes made of it."""
