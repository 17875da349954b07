"""The tables of the Best-of-N paper."""
