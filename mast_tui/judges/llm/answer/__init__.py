"""What a model said: reading its answers, and merging them into one judgement."""
