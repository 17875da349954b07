"""Labelling in a local page: what is asked of whom, the session of one rater, and the server that shows it."""
