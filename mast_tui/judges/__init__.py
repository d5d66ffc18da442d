"""The judges: rules, language models and the comparison of paired runs."""
