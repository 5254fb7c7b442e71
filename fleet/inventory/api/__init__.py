"""What is rented, over the API."""
