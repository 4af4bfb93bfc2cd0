"""Samples of one quantity: median and spread, ratios of two sides, and the better of several."""
import statistics
from typing import NamedTuple


class Spread(NamedTuple):
    median: float
    least: float
    most: float


def spread_of(samples):
    if not samples:
        raise ValueError("no samples")
    return Spread(statistics.median(samples), min(samples), max(samples))


def ratio_of(ours, theirs, higher_is_better):
    """How many times better ours is: the ratio of the medians, and the spread of the ratios of
    samples that were taken in the same turn."""
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} samples beside {len(theirs)}")
    above, below = (ours, theirs) if higher_is_better else (theirs, ours)
    by_turn = [a / b for a, b in zip(above, below)]
    return Spread(statistics.median(above) / statistics.median(below), min(by_turn), max(by_turn))


def better_of(candidates, higher_is_better):
    """The name whose samples have the better median; of equal ones the first."""
    choose = max if higher_is_better else min
    return choose(candidates, key=lambda name: statistics.median(candidates[name]))
