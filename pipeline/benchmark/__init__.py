"""Items in: readers, presets, the embedded benchmark, and grading φ(y, g)."""
