"""The network of the released checkpoints, written plainly: parameter names and layout of the files as published.

The forward pass takes one image and one caption at a time and follows the equations of SGRAF, with the small numbers of
its code (1e-8 in every norm). Nothing here comes from the package under test.
"""

import argparse
from collections import OrderedDict

import torch
from torch import nn

FEATURES, WIDTH, WORD_WIDTH, SIMILARITY_WIDTH, REGIONS, STEPS = 7, 12, 5, 6, 4, 3


def unit(vectors):
    return vectors / (vectors.pow(2).sum(-1, keepdim=True).sqrt() + 1e-8)


class EncoderImage(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(FEATURES, WIDTH)


class TwoViewEncoderImage(nn.Module):
    """UGNCL's."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(FEATURES, WIDTH)
        self.fc2 = nn.Linear(FEATURES, WIDTH)


class EncoderText(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embed = nn.Embedding(words, WORD_WIDTH)
        self.cap_rnn = nn.GRU(WORD_WIDTH, WIDTH, 1, batch_first=True, bidirectional=True)


class Attention(nn.Module):
    """v_global_w (with batch norms) and t_global_w (without)."""

    def __init__(self, local_norm=None, global_norm=None):
        super().__init__()
        self.embedding_local = branch(local_norm)
        self.embedding_global = branch(global_norm)
        self.embedding_common = nn.Sequential(nn.Linear(WIDTH, 1))

    def forward(self, elements):
        """(L, D) -> (D,)."""
        local = self.embedding_local(elements[None])[0]
        whole = self.embedding_global(elements.mean(0, keepdim=True))[0]
        weights = torch.softmax(self.embedding_common(local * whole).squeeze(1), dim=0)
        return unit((weights[:, None] * elements).sum(0))


def branch(norm):
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), *([norm] if norm else []), nn.Tanh(), nn.Dropout(0.4))


class GraphReasoning(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph_query_w = nn.Linear(SIMILARITY_WIDTH, SIMILARITY_WIDTH)
        self.graph_key_w = nn.Linear(SIMILARITY_WIDTH, SIMILARITY_WIDTH)
        self.sim_graph_w = nn.Linear(SIMILARITY_WIDTH, SIMILARITY_WIDTH)

    def forward(self, nodes):
        edges = torch.softmax(self.graph_query_w(nodes) @ self.graph_key_w(nodes).T, dim=1)
        return torch.relu(self.sim_graph_w(edges @ nodes))


class AttentionFiltration(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_sim_w = nn.Linear(SIMILARITY_WIDTH, 1)
        self.bn = nn.BatchNorm1d(1)

    def forward(self, nodes):
        gates = torch.sigmoid(self.bn(self.attn_sim_w(nodes).T[None])[0, 0])
        return unit((gates / (gates.sum() + 1e-8)) @ nodes)


class EncoderSimilarity(nn.Module):
    def __init__(self, kind, steps):
        super().__init__()
        self.v_global_w = Attention(nn.BatchNorm1d(REGIONS), nn.BatchNorm1d(WIDTH))
        self.t_global_w = Attention()
        self.sim_tranloc_w = nn.Linear(WIDTH, SIMILARITY_WIDTH)
        self.sim_tranglo_w = nn.Linear(WIDTH, SIMILARITY_WIDTH)
        self.sim_eval_w = nn.Linear(SIMILARITY_WIDTH, 1)
        if kind == "sgr":
            self.SGR_module = nn.ModuleList([GraphReasoning() for _ in range(steps)])
        else:
            self.SAF_module = AttentionFiltration()

    def forward(self, regions, words):
        """(R, D), (W, D) -> the logit r of the pair."""
        affinity = unit(nn.functional.leaky_relu(regions @ words.T, 0.1))  # normalised over the words of the caption
        attended = unit(torch.softmax(9 * affinity, dim=0).T @ regions)
        local = unit(self.sim_tranloc_w((attended - words) ** 2))
        whole = unit(self.sim_tranglo_w((self.v_global_w(regions) - self.t_global_w(words)) ** 2))
        nodes = torch.cat([whole[None], local])
        if hasattr(self, "SGR_module"):
            for step in self.SGR_module:
                nodes = step(nodes)
            return self.sim_eval_w(nodes[0])
        return self.sim_eval_w(self.SAF_module(nodes))


class Released:
    """Three modules side by side, as the released code keeps them."""

    def __init__(self, kind, words, *, seed=0, steps=STEPS):
        torch.manual_seed(seed)
        self.kind = kind
        self.img_enc, self.txt_enc, self.sim_enc = (
            self.new_image_encoder(), EncoderText(words), EncoderSimilarity(kind, steps)
        )  # fmt: skip
        with torch.no_grad():
            for module in self.parts():
                for name, value in module.state_dict().items():
                    if name.endswith("running_var"):
                        value.uniform_(0.3, 2.0)
                    elif name.endswith("running_mean"):
                        value.normal_(0, 0.5)
                    elif value.is_floating_point():  # as large as after training, so that scores differ
                        value.add_(torch.randn_like(value) * (1.2 / value.shape[-1] ** 0.5 if value.ndim == 2 else 0.3))
            self.sim_enc.sim_tranloc_w.weight.mul_(4)
            for step in getattr(self.sim_enc, "SGR_module", []):
                step.sim_graph_w.bias.abs_().add_(0.3)  # or a ReLU could be zero whatever the pair
            self.spread_scores(words)

    def new_image_encoder(self):
        return EncoderImage()

    def projections(self):
        return [self.img_enc.fc]

    def spread_scores(self, words):
        """Scale and shift the last layer so that the logits of random pairs have mean 0 and deviation 2."""
        captions = torch.randint(0, words, (8, 5)).tolist()
        logits = self.logits(self.projections()[0], torch.randn(8, REGIONS, FEATURES), captions)
        assert logits.std() > 0.01
        scale = 2 / logits.std()
        last = self.sim_enc.sim_eval_w
        last.bias.copy_((last.bias - logits.mean()) * scale)
        last.weight.mul_(scale)

    def parts(self):
        return [self.img_enc, self.txt_enc, self.sim_enc]

    def state_dict(self):
        return [part.state_dict() for part in self.parts()]

    @torch.no_grad()
    def similarities(self, features, captions):
        """σ(r) of features (n, R, F) and captions (lists of word ids), pair by pair: (n, m)."""
        return torch.sigmoid(self.logits(self.projections()[0], features, captions))

    @torch.no_grad()
    def logits(self, projection, features, captions):
        for part in self.parts():
            part.eval()
        images = [unit(projection(image)) for image in features]
        texts = []
        for caption in captions:
            states = self.txt_enc.cap_rnn(self.txt_enc.embed(torch.tensor([caption])))[0][0]
            texts.append(unit((states[:, :WIDTH] + states[:, WIDTH:]) / 2))
        rows = [torch.cat([self.sim_enc(image, text) for text in texts]) for image in images]
        return torch.stack(rows)


class TwoViews(Released):
    """UGNCL's network: two linear maps of the regions, everything after them shared."""

    def new_image_encoder(self):
        return TwoViewEncoderImage()

    def projections(self):
        return [self.img_enc.fc1, self.img_enc.fc2]

    def evidence(self, features, captions, tau=0.1):
        """What the released code ranks by: the mean over the views of exp(softplus(r) / τ)."""
        first, second = (self.logits(projection, features, captions).double() for projection in self.projections())
        return (torch.exp(torch.log1p(first.exp()) / tau) + torch.exp(torch.log1p(second.exp()) / tau)) / 2

    def similarities(self, features, captions, tau=0.1):
        """σ of the logit that has that evidence: log(evidence) τ = log(1 + exp(r))."""
        return (1 - self.evidence(features, captions, tau) ** -tau).float()


def options(**more):
    common = {"data_name": "f30k_precomp", "learning_rate": 0.0002, "schedules": [5, 5, 30]}
    return argparse.Namespace(**common, bi_gru=True, no_imgnorm=False, no_txtnorm=False, **more)


def sgraf(model):
    return {"epoch": 3, "model": model.state_dict(), "best_rsum": 480.5, "opt": options(), "Eiters": 9}


def decl(model):
    return {"epoch": 3, "model": model.state_dict(), "best_rsum": 480.5, "opt": options(tau=0.1), "step": 9}


def crcl(model):
    import numpy as np

    beliefs = {"move_gt": np.linspace(0, 1, 50), "schedule": 2, "best_rsum": np.float64(480.5)}
    return {"epoch": np.int64(3), "model": model.state_dict(), "opt": options(mc=True), "step": 9, **beliefs}


def ugncl(model, **more):
    return {"epoch": 3, "model": model.state_dict(), "best_rsum": 480.5, "opt": options(**{"tau": 0.1, **more})}


def ncr(first, second):
    both = {"model_A": first.state_dict(), "model_B": second.state_dict()}
    return {"epoch": 3, **both, "best_rsum": 480.5, "opt": options(noise_ratio=0.2)}


def gsc(model):
    return {**sgraf(model), "model": [*model.state_dict(), *per_pair()]}


def gsc_plus(first, second):
    both = {"model_A": [*first.state_dict(), *per_pair()], "model_B": [*second.state_dict(), *per_pair()]}
    return {"epoch": 3, **both, "best_rsum": 480.5, "opt": options(temp=0.07), "step": 9}


def per_pair():
    """targets, topos, topo_targets: one value a training pair."""
    return [torch.rand(50, dtype=torch.float64), torch.ones(50), torch.rand(50, dtype=torch.float64)]


def in_data_parallel(states):
    """The same state dicts, with the names that nn.DataParallel gives."""
    return [OrderedDict((f"module.{name}", value) for name, value in state.items()) for state in states]
