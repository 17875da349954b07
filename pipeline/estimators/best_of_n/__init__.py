"""Best-of-N: what the best of N draws is worth, from K judged draws an item."""
