"""The program on every rented machine."""
