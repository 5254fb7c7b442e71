"""What software lies on images and machines, where it runs, and the runbooks that teams keep for it."""
