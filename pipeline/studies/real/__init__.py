"""Studies on the user's own tables and runs."""
