"""The charts of a job: what it told and what its machines measured, on one axis of time."""
