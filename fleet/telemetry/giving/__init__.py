"""What Rackrent gives to Prometheus: the fleet's readings under DCGM's names, and its own of prices, states and hosts (docs/metrics.md)."""
