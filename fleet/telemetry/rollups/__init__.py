"""Rollups of samples: 5 minutes and 1 hour, with what remains of a reading once its samples are dropped."""
