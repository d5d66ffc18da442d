"""Lists of chat messages, whoever wrote them."""
