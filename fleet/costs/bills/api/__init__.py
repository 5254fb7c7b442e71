"""Bills, comparisons and adjustments over the API."""
