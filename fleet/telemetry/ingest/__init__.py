"""The ASGI application beside Django that takes what agents send (docs/ingest.md)."""
