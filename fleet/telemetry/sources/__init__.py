"""Machines that are watched through the team's own Prometheus, without an agent and without a connection to them (docs/scraping.md)."""
