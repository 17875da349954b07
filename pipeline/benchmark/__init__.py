"""Items in: readers, presets, the embedded benchmark, and grading φ(y, g)."""

from pipeline.benchmark.items import Benchmark, Item, draw_labeled, jitter_profile, load_benchmark

__all__ = ["Benchmark", "Item", "draw_labeled", "jitter_profile", "load_benchmark"]
