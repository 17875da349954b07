"""``python -m pipeline``: the same as the ``auxeval`` command."""

from pipeline.start import main

main()
