"""What is intact in broken JSON."""
