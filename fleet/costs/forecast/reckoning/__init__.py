"""Where a month is heading: what is known to be charged until it ends, what usually comes on top, and how far past forecasts were off.

Imports no Django and reads no clock.
"""
