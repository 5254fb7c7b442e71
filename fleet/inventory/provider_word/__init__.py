"""What providers themselves say of machines beside their lists: use as they measure it, and what they announce."""
