"""A judge against gold or a person."""
