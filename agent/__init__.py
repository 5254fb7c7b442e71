"""The program on every rented machine: measures GPUs and host, tells the dashboard, obeys nothing but interval and pause."""

__version__ = "0.1.0"
