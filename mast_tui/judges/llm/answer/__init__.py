"""The answers of a model: parsing them, and merging them into one judgement."""
