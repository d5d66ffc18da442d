"""The prompt of a model: definitions of modes, examples, and the redacted trace in windows."""
