"""A criterion inside the trainers of transformers and sentence-transformers: losses, resumption, the examples."""

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

import truepair
from tests.encoders.tiny_models import write_model
from truepair.errors import InputError
from truepair.loops.trainers import SentenceTransformersLoss, TrainerLoss, epoch_callback

EXAMPLES = Path(__file__).parents[2] / "examples"
COUNT, BATCH = 24, 8


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("models") / "clip")


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, place):
        generator = torch.Generator().manual_seed(place)
        words = torch.cat([torch.tensor([2]), torch.randint(4, 20, (5,), generator=generator), torch.tensor([3])])
        pixels = torch.randn(3, 16, 16, generator=generator)
        return {"pixel_values": pixels, "input_ids": words, "attention_mask": torch.ones(7), "labels": place}


def trainer_of(clip, folder, *, epochs=4, **options):
    from transformers import CLIPModel, Trainer, TrainingArguments

    torch.manual_seed(0)
    model = CLIPModel.from_pretrained(clip)
    criterion = truepair.Criterion("crcl", pairs=COUNT, epochs=4)
    args = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=epochs,
        per_device_train_batch_size=BATCH,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        remove_unused_columns=False,
        label_names=["labels"],
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        **{"save_strategy": "no", **options},
    )
    trainer = Trainer(
        model=model,
        args=args,
        train_dataset=Items(),
        eval_dataset=Items(),
        compute_loss_func=TrainerLoss(criterion, scale=lambda: model.logit_scale.exp()),
        callbacks=[epoch_callback(criterion)],
    )
    return trainer, criterion


@pytest.mark.parametrize("save_steps", [2, 3])
def test_a_trainer_goes_on_exactly_from_its_checkpoint(clip, tmp_path, save_steps):
    """Within an epoch (2) and between its last batch and its end (3); an epoch has three batches."""
    whole, expected = trainer_of(clip, tmp_path / "whole")
    whole.train()
    assert expected.finished and expected.belief.std() > 0
    first, _ = trainer_of(clip, tmp_path / "cut", save_strategy="steps", save_steps=save_steps)
    first.train()
    again, criterion = trainer_of(clip, tmp_path / "cut")
    again.train(resume_from_checkpoint=str(tmp_path / "cut" / f"checkpoint-{save_steps}"))
    assert criterion.finished
    torch.testing.assert_close(criterion.belief, expected.belief, rtol=0, atol=1e-6)
    mine, theirs = again.model.state_dict(), whole.model.state_dict()
    torch.testing.assert_close(mine["logit_scale"], theirs["logit_scale"])


def test_evaluation_leaves_no_trace(clip, tmp_path):
    trainer, criterion = trainer_of(clip, tmp_path, epochs=1)
    trainer.train()
    before = criterion.belief
    loss = trainer.evaluate()["eval_loss"]
    assert torch.equal(before, criterion.belief) and not criterion.seen.any()
    assert loss > 0


def outputs(count=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    images, texts = (torch.randn(count, 4, generator=generator, requires_grad=True) for _ in range(2))
    return SimpleNamespace(image_embeds=images, text_embeds=texts)


def test_batches_of_an_accumulated_step_count_by_their_pairs():
    losses = []
    for of in (None, 12, torch.tensor(12)):
        loss = TrainerLoss(truepair.Criterion("infonce", pairs=12, epochs=1))
        losses.append(loss(outputs(), torch.arange(6), num_items_in_batch=of))
    torch.testing.assert_close(losses[1], losses[0] / 2)
    torch.testing.assert_close(losses[2], losses[0] / 2)


def test_what_a_trainer_must_give_is_said():
    loss = TrainerLoss(truepair.Criterion("infonce", pairs=12, epochs=1))
    with pytest.raises(InputError, match="remove_unused_columns=False"):
        loss(outputs(), None)
    with pytest.raises(InputError, match="the model gives no image_embeds and no text_embeds"):
        loss(SimpleNamespace(logits=1), torch.arange(6))


class Half(torch.nn.Module):
    def forward(self, features):
        return {"sentence_embedding": features["x"]}


def test_the_loss_of_sentence_transformers_is_the_criterion():
    given = outputs()
    loss = SentenceTransformersLoss(Half(), truepair.Criterion("infonce", pairs=12, epochs=1), scale=10.0)
    found = loss([{"x": given.image_embeds}, {"x": given.text_embeds}], torch.arange(6))
    criterion = truepair.Criterion("infonce", pairs=12, epochs=1)
    torch.testing.assert_close(found, criterion(given.image_embeds, given.text_embeds, range(6), scale=10.0))
    with pytest.raises(InputError, match="no column label"):
        loss([{"x": given.image_embeds}, {"x": given.text_embeds}], None)
    with pytest.raises(InputError, match="has 1 columns beside the label"):
        loss([{"x": given.image_embeds}], torch.arange(6))


@pytest.mark.parametrize("name", ["plain_loop", "huggingface_trainer", "sentence_transformers_trainer"])
def test_the_examples_run(name, monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    try:
        auroc = importlib.import_module(name).main(count=120, epochs=3)
    finally:
        for made in (name, "drawings"):
            sys.modules.pop(made, None)
    assert 0 <= auroc <= 1 and f"AUROC of {auroc:.3f}" in capsys.readouterr().out
    assert "torchvision" not in sys.modules
