"""The tables of the LACE paper."""
