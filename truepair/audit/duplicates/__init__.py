"""Pairs that share an image, a caption or both, exactly or nearly."""

from truepair.audit.duplicates.find import find_duplicates

__all__ = ["find_duplicates"]
