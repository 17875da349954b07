"""``python -m pipeline``: the same as the ``auxeval`` command."""

from pipeline.cli import main

main()
