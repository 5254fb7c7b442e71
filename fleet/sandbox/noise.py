"""Randomness that is a function of time: the same moment and seed always give the same value, in whatever order they are asked for."""

from __future__ import annotations

from math import floor

_MASK = 0xFFFFFFFF


def scatter(number: int, seed: int) -> float:
    """A value in [0, 1) for a whole number: an integer hash (the finalizer of MurmurHash3), not a secret."""
    value = (number * 0x9E3779B1 ^ seed * 0x85EBCA77) & _MASK
    value = ((value ^ value >> 16) * 0x85EBCA6B) & _MASK
    value = ((value ^ value >> 13) * 0xC2B2AE35) & _MASK
    return (value ^ value >> 16) / 2**32


def jitter(t: float, seed: int) -> float:
    """White noise in [-1, 1), one value for each second."""
    return scatter(floor(t), seed) * 2 - 1


def drift(t: float, seed: int, period_seconds: float) -> float:
    """Smooth noise in [0, 1) that wanders from one level to another over `period_seconds`."""
    position = t / period_seconds
    step = floor(position)
    part = position - step
    ease = part * part * (3 - 2 * part)
    low, high = scatter(step, seed), scatter(step + 1, seed)
    return low + (high - low) * ease


def clamp(value: float, low: float, high: float) -> float:
    return low if value < low else min(value, high)
