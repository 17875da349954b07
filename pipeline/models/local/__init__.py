"""Small models served on this machine for as long as a run lasts: no key, no account, no bill."""
