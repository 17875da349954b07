"""What only a run can tell, section by section: its judges, signals, calls, repeats, the truth it simulated."""
