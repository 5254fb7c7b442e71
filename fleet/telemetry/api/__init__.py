"""What machines measured, over the API."""
