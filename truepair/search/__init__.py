"""Search of vectors and of pairs: an index of a model's images and captions, asked by words, pictures or ids.

index = run.model.index(pairs)
for hit in index.search("red shoes", k=10):
    print(hit.score, hit.id)
index.save("index")
"""

from truepair.search.embedder import Embedder
from truepair.search.index import Hit, Hits, Index, load_index
from truepair.search.vectors import EXACT_UP_TO

__all__ = ["EXACT_UP_TO", "Embedder", "Hit", "Hits", "Index", "load_index"]
