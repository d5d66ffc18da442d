"""Tests of the migration of labels from one version of a codebook to the next."""
