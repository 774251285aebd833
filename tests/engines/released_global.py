"""The global network of CRCL's checkpoints (`--module_name VSEinfty`), written plainly: names and layout as published.

The forward pass takes one image or one caption at a time. Nothing here comes from the package under test.
"""

import math

import torch
from torch import nn

from tests.engines.released_layout import FEATURES, REGIONS, WIDTH, WORD_WIDTH, options, unit

RANKS = 32  # width of the encodings of ranks and of the GRU that reads them


class GPO(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(RANKS, RANKS, 1, batch_first=True, bidirectional=True)
        self.linear = nn.Linear(RANKS, 1, bias=False)

    def forward(self, elements):
        """(L, D) -> (D,)."""
        states = self.gru(ranks(len(elements))[None])[0][0]
        scores = self.linear((states[:, :RANKS] + states[:, RANKS:]) / 2)[:, 0]
        weights = torch.exp(scores / 0.1) / torch.exp(scores / 0.1).sum()
        pooled = torch.zeros(elements.shape[1])
        for column in range(elements.shape[1]):
            largest_first = sorted(elements[:, column].tolist(), reverse=True)
            pooled[column] = sum(weight * value for weight, value in zip(weights, largest_first, strict=True))
        return pooled


def ranks(count):
    table = torch.zeros(count, RANKS)
    for rank in range(count):
        for pair in range(RANKS // 2):
            angle = rank * math.exp(2 * pair * -math.log(10000.0) / RANKS)
            table[rank, 2 * pair], table[rank, 2 * pair + 1] = math.sin(angle), math.cos(angle)
    return table


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(FEATURES, WIDTH // 2), nn.Linear(WIDTH // 2, WIDTH)])
        self.bns = nn.ModuleList([nn.BatchNorm1d(WIDTH // 2), nn.BatchNorm1d(WIDTH)])  # the second is never called

    def forward(self, regions):
        return self.layers[1](torch.relu(self.bns[0](self.layers[0](regions))))


class EncoderImageAggr(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(FEATURES, WIDTH)
        self.mlp = MLP()
        self.gpool = GPO()

    def forward(self, regions):
        """(R, F) -> (D,)."""
        return unit(self.gpool(self.mlp(regions) + self.fc(regions)))


class EncoderText(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embed = nn.Embedding(words, WORD_WIDTH)
        self.gpool = GPO()
        self.rnn = nn.GRU(WORD_WIDTH, WIDTH, 1, batch_first=True, bidirectional=True)

    def forward(self, caption):
        """Word ids (W,) -> (D,)."""
        states = self.rnn(self.embed(caption[None]))[0][0]
        return unit(self.gpool((states[:, :WIDTH] + states[:, WIDTH:]) / 2))


class ReleasedGlobal:
    """Two modules side by side, as the released code keeps them."""

    kind = "global"

    def __init__(self, words, *, seed=0):
        torch.manual_seed(seed)
        self.img_enc, self.txt_enc = EncoderImageAggr(), EncoderText(words)
        with torch.no_grad():
            for part in (self.img_enc, self.txt_enc):
                for name, value in part.state_dict().items():
                    if name.endswith("running_var"):
                        value.uniform_(0.3, 2.0)
                    elif value.is_floating_point():  # as large as after training, so that scores differ
                        value.add_(torch.randn_like(value) * 0.4)

    def state_dict(self):
        return [self.img_enc.state_dict(), self.txt_enc.state_dict()]

    @torch.no_grad()
    def similarities(self, features, captions):
        """Cosines of features (n, R, F) and captions (lists of word ids): (n, m)."""
        self.img_enc.eval(), self.txt_enc.eval()
        assert features.shape[1] == REGIONS
        images = torch.stack([self.img_enc(image) for image in features])
        return images @ torch.stack([self.txt_enc(torch.tensor(caption)) for caption in captions]).T


def crcl_global(model):
    """As CRCL's training code writes it."""
    import numpy as np

    beliefs = {"move_gt": np.linspace(0, 1, 50), "schedule": 2, "best_rsum": np.float64(480.5)}
    return {"epoch": 3, "model": model.state_dict(), "opt": options(module_name="VSEinfty"), "step": 9, **beliefs}
