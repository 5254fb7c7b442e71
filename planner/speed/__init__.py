"""How long a step of training, a prompt and a token take: floating-point operations and bytes counted from the shape, over what cards and links reach."""
