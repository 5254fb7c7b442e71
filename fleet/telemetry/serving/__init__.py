"""What serving engines say of their requests: endpoints, readings, sums over time. Kept in PostgreSQL whichever engine keeps the readings of GPUs."""
