"""What keys do: the rows of the registry, and the keys that a person chose."""
