"""Label plans: what labels shall decide, declared before them, and every look since."""
