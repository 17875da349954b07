"""Names by which a credential is known: in a query of an address, say."""

from __future__ import annotations

__all__ = ["names_a_credential"]

_WORDS = ("key", "token", "secret", "sig", "pass", "auth", "cred")


def names_a_credential(name: str) -> bool:
    """Whether what is called so may be a secret; rather once too often."""
    return any(word in name.lower() for word in _WORDS)
