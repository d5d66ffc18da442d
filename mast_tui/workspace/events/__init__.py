"""Events: what they are, how they are written, and the tables that follow from them."""
