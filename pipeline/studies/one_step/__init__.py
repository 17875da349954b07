"""The tables of the one-step paper."""
