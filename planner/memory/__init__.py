"""Memory per GPU, term by term: of a training step, of a server."""
