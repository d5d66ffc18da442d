"""What holds for every test: none is about time, however busy the machine is."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "house",
    parent=settings.default,
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# By hand, where a night is at hand: pytest --hypothesis-profile=thorough
settings.register_profile("thorough", parent=settings.get_profile("house"), max_examples=2000)
settings.load_profile("house")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: tests of screens wait as long as they compute."""
    return (os.cpu_count() or 1) + 1
