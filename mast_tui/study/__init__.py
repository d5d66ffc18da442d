"""A study: the assignment of traces to annotators, and the conditions of their work."""

from mast_tui.study.model import (
    Assignment,
    Draw,
    Membership,
    OpenModes,
    Release,
    Study,
    changes_to_figures,
)
from mast_tui.study.plan import (
    annotators_of,
    assigned,
    is_expected,
    overlap_traces,
    random_sample,
    retest_traces,
    retests_due,
    stratified_sample,
    weighted_sample,
    with_release,
    withheld_traces,
)

__all__ = [
    "Assignment",
    "Draw",
    "Membership",
    "OpenModes",
    "Release",
    "Study",
    "annotators_of",
    "assigned",
    "changes_to_figures",
    "is_expected",
    "overlap_traces",
    "random_sample",
    "retest_traces",
    "retests_due",
    "stratified_sample",
    "weighted_sample",
    "with_release",
    "withheld_traces",
]
