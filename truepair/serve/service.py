"""What all endpoints share: the sources, the pictures that were shown last, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence

from truepair.serve.errors import not_found
from truepair.serve.metrics import Metrics
from truepair.serve.pictures import Cache
from truepair.serve.sources import Source


class Service:
    """The state of one service; endpoints of several threads read it at once."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = {source.name: source for source in sources}
        self.pictures, self.metrics = Cache(), Metrics()

    def source(self, name: str | None) -> Source:
        """A source by its name, the first where none is named. Raises Problem: there is no such source."""
        if name is None:
            return next(iter(self.sources.values()))
        if name not in self.sources:
            raise not_found("source", name, f"the sources are: {', '.join(self.sources)}")
        return self.sources[name]
