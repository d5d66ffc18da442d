"""The adjudicate screen: what annotators differ on, the evidence, and one key to settle each."""
