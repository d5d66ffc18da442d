"""The exam: judges scored on labelled sets, and their consistency without a set."""
