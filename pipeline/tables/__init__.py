"""Tidy tables: schemas, Parquet store, signal assembly, imports from other tools."""
