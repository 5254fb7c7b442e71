"""Budgets: what may be spent in a period, what is told when parts of it are, and what a hard one does."""
