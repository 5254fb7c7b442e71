"""The few fixed actions that a dashboard may ask for by name. What they do stands in this package and on this machine, never in an answer."""
