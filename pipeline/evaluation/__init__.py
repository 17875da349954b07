"""From a pool of items with some labels to the numbers a person decides by: one place for runs and tables."""
