"""Attribution over the API."""
