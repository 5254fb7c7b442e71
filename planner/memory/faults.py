"""Whether the catalogue's models agree with themselves: parameters and cache that follow from a shape against what its row says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from planner.catalogue.models import Model, models
from planner.memory.cache import token_cache
from planner.parameters import count_parameters
from planner.runs import Layout

# Published totals are rounded to three or four digits.
PARAMETER_TOLERANCE = 0.004


def model_faults(every: Iterable[Model] | None = None) -> Iterator[str]:
    """A line for each disagreement: file, model, column, both numbers. A row that cannot be read raises CatalogueError."""
    for model in models().values() if every is None else every:
        counts = count_parameters(model.shape)
        counted = counts.total - counts.vision
        published = model.shape.published_parameters
        if published and abs(counted / published - 1) > PARAMETER_TOLERANCE:
            yield f"models.csv, {model.id}, params_b: {published:,} published, {counted:,} follow from the shape"
        cache = token_cache(model.shape, Layout(), "bf16").bytes
        if round(cache) != model.cache_bytes_per_token:
            yield f"models.csv, {model.id}, kv_bytes_per_token_bf16: {model.cache_bytes_per_token}, {cache:g} follow from the shape"
