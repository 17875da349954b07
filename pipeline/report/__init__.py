"""Estimates to terminal, HTML and plots."""
