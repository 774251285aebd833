"""What methods that learn from class labels share: prototypes, and a belief about every pair's class.

The pairs are right, their labels may not be. Images and texts share one prototype a class; an item's class is that of
the nearest. Source: UOT-RCL, section III-A, as MRL before it.

Shape letters: B pairs of a batch, N of the training set, K classes, D width of the encodings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from truepair.errors import InputError
from truepair.methods.base import Forward, LabelBeliefs, Method

if TYPE_CHECKING:
    from torch import Tensor

    from truepair.correspondence import CorrespondenceMemory
    from truepair.correspondence.memory import GivenClasses


class LabelMethod(Method):
    """Learns from the given class labels with prototypes as auxiliary network.

    Per pair the memory holds `label_distribution` (N, K), how probable each class is held to be.
    """

    figure = "map"
    learns_from_labels = True
    belief_temperature: ClassVar[float] = 0.1
    """Of the remembered predictions: at τ1 = 1, cosines give no class more than e / (e + K − 1)."""

    def prepare(self, memory: CorrespondenceMemory) -> None:
        from truepair.methods.prototypes import AuxiliaryPrototypes

        self.given = given_classes(memory)
        self.auxiliary = AuxiliaryPrototypes(self.name, self.given.count)
        memory.register("label_distribution", self.given.one_hot())

    def logits(self, forward: Forward) -> tuple[Tensor, Tensor]:
        """μᵀz / τ1 of the images and of the texts of a batch, (B, K) each (UOT-RCL, eq. 1)."""
        assert forward.auxiliary is not None
        network, temperature = forward.networks[0], self.config.temperature
        images, texts = (forward.auxiliary(side) / temperature for side in (network.images, network.texts))
        return images, texts

    def given_labels(self, forward: Forward) -> Tensor:
        """(B,) int64 labels of the batch as the data give them."""
        assert forward.batch.labels is not None
        return forward.batch.labels

    def remember_prediction(
        self, logits: tuple[Tensor, Tensor], forward: Forward, memory: CorrespondenceMemory
    ) -> None:
        """Keep what the model, both modalities together, now takes each pair's class to be."""
        cosines = (logits[0] + logits[1]).detach() * self.config.temperature / 2
        memory.write("label_distribution", forward.batch.ids, (cosines / self.belief_temperature).softmax(dim=1))

    def label_distribution(self, memory: CorrespondenceMemory) -> Tensor:
        """How probable each class is held to be for every pair, (N, K), rows sum to one."""
        return memory.read("label_distribution")

    def confidence(self, memory: CorrespondenceMemory) -> Tensor:
        """How sure the most probable class of every pair is, (N,) in [0, 1]."""
        return self.label_distribution(memory).amax(dim=1)

    def label_beliefs(self, memory: CorrespondenceMemory) -> LabelBeliefs:
        return LabelBeliefs(self.label_distribution(memory), self.confidence(memory))

    def belief(self, memory: CorrespondenceMemory) -> Tensor:
        """How probable every pair's given label is held to be, (N,) in [0, 1]."""
        return self.label_distribution(memory).gather(1, self.given.labels[:, None])[:, 0]

    def division(self, memory: CorrespondenceMemory) -> Tensor:
        """Clean where no other class is held to be more probable than the given one."""
        import torch

        from truepair.correspondence.division import Part

        kept = self.belief(memory) >= self.label_distribution(memory).amax(dim=1)
        return torch.where(kept, int(Part.CLEAN), int(Part.NOISY))


def given_classes(memory: CorrespondenceMemory) -> GivenClasses:
    if memory.classes is None:
        raise InputError("this method learns from class labels, and the memory was given none")
    return memory.classes
