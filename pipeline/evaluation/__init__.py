"""From a pool of items with some labels to numbers that a person decides by."""
