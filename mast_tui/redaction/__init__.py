"""Redaction of secrets and personal data in the texts of traces."""
