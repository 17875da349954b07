"""A run as one portable file: configuration, prompts, items, and every recorded response or failure."""
