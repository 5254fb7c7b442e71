"""Prepaid money: how much is left at each account, for how long it lasts, and when it was topped up."""
