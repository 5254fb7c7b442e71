"""A plan of the planner as a job: what to run, on how many machines, which of them fit, and what was promised of it."""
