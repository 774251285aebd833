"""What all endpoints share: the sources, their reviews, the pictures that were shown last, and what is counted."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from truepair.serve.errors import not_found
from truepair.serve.metrics import Metrics
from truepair.serve.pictures import Cache
from truepair.serve.reviews import Review
from truepair.serve.sources import Source


class Service:
    """The state of one service; endpoints of several threads read it at once."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.sources = {source.name: source for source in sources}
        self.pictures, self.metrics = Cache(), Metrics()
        self._reviews: dict[str, Review] = {}
        self._lock = Lock()

    def source(self, name: str | None) -> Source:
        """A source by its name, the first where none is named. Raises Problem: there is no such source."""
        if name is None:
            return next(iter(self.sources.values()))
        if name not in self.sources:
            raise not_found("source", name, f"the sources are: {', '.join(self.sources)}")
        return self.sources[name]

    def review(self, name: str | None) -> Review:
        """The review of an audit by its name, of the first where none is named. Raises Problem: there is none."""
        if name is None:
            audits = (source.name for source in self.sources.values() if source.kind == "audit")
            name = next(audits, next(iter(self.sources)))
        source = self.source(name)
        with self._lock:
            if name not in self._reviews:
                self._reviews[name] = Review(source)
            return self._reviews[name]
