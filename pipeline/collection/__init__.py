"""What to ask whom for each item: prompts, reply schemas, stages, the collector."""
