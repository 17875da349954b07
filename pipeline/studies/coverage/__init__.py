"""How often the intervals hold their truth."""
