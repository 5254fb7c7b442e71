"""The fixed test of a machine: what there is, and how fast. In a process of its own, of low priority, within a bounded time."""
