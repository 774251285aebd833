"""Entropic optimal transport: all of the mass, or a chosen part of it."""

from truepair.transport.balanced import sinkhorn
from truepair.transport.partial import partial_transport
from truepair.transport.problem import TransportWarning

__all__ = ["TransportWarning", "partial_transport", "sinkhorn"]
