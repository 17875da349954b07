"""The `auxeval` command: parse, call, print."""
