"""The life of a run directory: create, lock, resume, replay, manifest; from tables to estimators."""
