"""LACE: means and profiles over a pool of which only some items have a gold label, by local linear corrections."""
