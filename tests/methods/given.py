"""Batches whose similarities (and encodings) are given, and what every method owes the order of its pairs."""

import torch

from truepair.correspondence import CorrespondenceMemory


class GivenNetwork:
    """A network whose similarities are given, row = image; the encodings are whatever the method reads."""

    def __init__(self, similarity, images=None, texts=None):
        self.similarity, self.images, self.texts = similarity, images, texts
        self.image_vectors, self.text_vectors = images, texts
        self.view_scores = self.view_rankings = [similarity]
        if images is not None:
            self.image_similarity, self.text_similarity = images @ images.T, texts @ texts.T

    def taken(self, order):
        sides = [side if side is None else side[order] for side in (self.images, self.texts)]
        return GivenNetwork(self.similarity[order][:, order], *sides)


class GivenForward:
    largest = None

    def __init__(self, networks, ids, auxiliary=None):
        self.networks, self.auxiliary = networks, auxiliary
        self.similarity = torch.stack([network.similarity for network in networks]).mean(dim=0)
        self.batch = type("Batch", (), {"ids": ids, "__len__": lambda _: len(ids)})()

    def taken(self, order):
        return GivenForward([network.taken(order) for network in self.networks], self.batch.ids[order], self.auxiliary)


def remembering(method, count, **values):
    """A memory of the method with these values of all pairs."""
    memory = CorrespondenceMemory(count)
    method.prepare(memory)
    for name, value in values.items():
        memory.write(name, None, torch.as_tensor(value))
    return memory


def check_order_does_not_matter(method, forward, position, values, tolerance=1e-12):
    """Pairs of a batch in another order: their losses and all that is remembered of them go along, nothing else."""
    count = len(forward.batch.ids)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(7))
    found = []
    for given in (forward, forward.taken(order)):
        memory = remembering(method, count, **values)
        loss = method.batch_loss(given, position, memory).per_pair
        method.survey(given, position, memory)
        found.append((loss, memory.tensors()))
    torch.testing.assert_close(found[1][0], found[0][0][order], rtol=0, atol=tolerance)
    for name, expected in found[0][1].items():
        torch.testing.assert_close(found[1][1][name], expected, rtol=0, atol=1e-6)
    assert float(found[0][0].std()) > 0
