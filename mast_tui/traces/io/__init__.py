"""Bytes of foreign files: opened, unpacked, decoded."""
