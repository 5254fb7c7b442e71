"""How `manage.py up` runs an installation: one process of each kind, watched, restarted, stopped in order."""
