"""How often a stop is wrong, as a smooth curve over windows: counts of few runs jump, and the best of sixty jumping figures is luck. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

# Chosen on a recorded image-generation service, half of its pods against the other half (docs/idle.md); the width is of the window's logarithm.
KERNEL_WIDTH = 0.2
KERNEL_SHARE = 0.1
DEGREE = 3
RIDGE = 1e-3
ROUNDS = 60
LARGEST_EXPONENT = 20.0
Vector = list[float]


def smooth_counts(windows: Sequence[float], counts: Sequence[float]) -> Vector:
    """A cubic Poisson regression, which does not follow noise, bent a little towards a kernel, which follows the data."""
    at = [log(window) for window in windows]
    pairs = zip(kernel(at, counts), poisson(at, counts), strict=True)
    return [KERNEL_SHARE * near + (1 - KERNEL_SHARE) * fitted for near, fitted in pairs]


def kernel(at: Sequence[float], counts: Sequence[float]) -> Vector:
    return [weighted([exp(-0.5 * ((here - there) / KERNEL_WIDTH) ** 2) for there in at], counts) for here in at]


def weighted(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(weights, values, strict=True)) / sum(weights)


def poisson(at: Sequence[float], counts: Sequence[float]) -> Vector:
    """Fitted means of log-linear counts, by Newton's method with damped steps."""
    rows = [[x**power for power in range(DEGREE + 1)] for x in at]
    beta = [log(sum(counts) / len(counts) + 0.1)] + [0.0] * DEGREE
    for _ in range(ROUNDS):
        step = newton_step(rows, counts, beta)
        largest = max(abs(change) for change in step)
        beta = [value + change / max(1.0, largest / 2) for value, change in zip(beta, step, strict=True)]
        if largest < 1e-6:
            break
    return [mean_at(row, beta) for row in rows]


def mean_at(row: Sequence[float], beta: Sequence[float]) -> float:
    exponent = sum(x * b for x, b in zip(row, beta, strict=True))
    return exp(min(max(exponent, -LARGEST_EXPONENT), LARGEST_EXPONENT))


def newton_step(rows: Sequence[Vector], counts: Sequence[float], beta: Vector) -> Vector:
    size = len(beta)
    means = [mean_at(row, beta) for row in rows]
    gradient = [-RIDGE * value for value in beta]
    hessian = [[RIDGE if i == j else 0.0 for j in range(size)] for i in range(size)]
    for row, count, mean in zip(rows, counts, means, strict=True):
        for i in range(size):
            gradient[i] += row[i] * (count - mean)
            for j in range(size):
                hessian[i][j] += mean * row[i] * row[j]
    return solve(hessian, gradient)


def solve(matrix: list[Vector], right: Vector) -> Vector:
    """Gauss with pivots; the ridge keeps the matrix regular."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda index: abs(rows[index][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for below in range(column + 1, size):
            factor = rows[below][column] / rows[column][column]
            rows[below] = [low - factor * high for low, high in zip(rows[below], rows[column], strict=True)]
    found = [0.0] * size
    for index in reversed(range(size)):
        rest = sum(rows[index][later] * found[later] for later in range(index + 1, size))
        found[index] = (rows[index][size] - rest) / rows[index][index]
    return found
