"""Other tools' results as one table: Inspect AI logs, lm-evaluation-harness samples, plain tables."""
