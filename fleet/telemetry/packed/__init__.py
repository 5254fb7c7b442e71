"""Samples that outlive their day: an hour of one GPU or machine in one row, a tenth of the size and less. docs/history.md says how."""
