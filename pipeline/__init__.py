"""auxeval: evaluate language models with fewer gold labels and honest error bars."""
