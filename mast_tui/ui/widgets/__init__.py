"""The parts that screens are made of, one per file."""
