"""Facts that planner.data ships, as typed rows."""
