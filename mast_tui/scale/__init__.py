"""Judges on millions of traces: their findings in Parquet shards, written by many workers."""
