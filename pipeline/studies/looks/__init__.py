"""Studies of repeated looks and of the gate: do all intervals of a plan hold together, and how often is a drop seen."""
