"""Differences between models: pairs, all pairs at once, votes and ranks."""
