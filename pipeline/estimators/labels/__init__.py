"""Gold labels: how they were drawn, how many a wanted width needs, what each is worth."""
