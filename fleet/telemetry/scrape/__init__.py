"""Readings taken from Prometheus exporters, written the same way as those that agents send (docs/scraping.md)."""
