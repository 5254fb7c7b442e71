"""Which cheaper offer would do a machine's measured work: pure, no Django, no clock."""
