"""Which GPUs, how many, and how they share the work."""
