"""Events, the ways to record them, and the tables that follow from them."""
