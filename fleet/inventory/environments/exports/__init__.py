"""An environment as files that set it up again: pure, from what is known of it to text that is safe whatever an agent reported."""
