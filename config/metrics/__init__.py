"""GET /metrics: how Rackrent itself is doing, for Prometheus (docs/operate.md). What the fleet does is another page: docs/metrics.md."""
