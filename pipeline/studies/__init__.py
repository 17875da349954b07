"""Simulations and tables of the papers, and studies on real tables."""
