"""Judges on millions of traces: their findings as Parquet shards, by clusters of workers."""
