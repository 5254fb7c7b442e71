"""Files and commands that start a run as planned, one module for each launcher; planner.launchers.registry lists them."""
