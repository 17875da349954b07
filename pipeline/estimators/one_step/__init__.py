"""One-step means: gold labels with a fitted correction from the judge's draws."""
