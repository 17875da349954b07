"""Simulated models: a known world, the models that live in it, and the transport that reaches them."""
