"""Tiny CLIP, SigLIP and others with random weights and a tokenizer of their own, as folders: no network needed."""

import torch

from truepair.encoders.hf.model import quiet

WORDS = "red blue green yellow white black round square circle triangle large small left right above below and of a the"
TOWER = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
LONGEST = 16


def write_tokenizer(folder, words=WORDS, longest=LONGEST):
    """Words by spaces, <s> before and </s> after; ids 0 to 3 are <pad>, <unk>, <s>, </s>."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: number for number, word in enumerate(["<pad>", "<unk>", "<s>", "</s>", *words.split()])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)])
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=longest, **names).save_pretrained(folder)
    return len(vocabulary)


def write_processor(folder, side=16, *, crops=True):
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
    from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

    if crops:
        size = {"size": {"shortest_edge": side}, "crop_size": {"height": side, "width": side}}
        CLIPImageProcessorPil(**size).save_pretrained(folder)
    else:
        SiglipImageProcessorPil(size={"height": side, "width": side}).save_pretrained(folder)


def text_config(words, **more):
    marks = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    return {**TOWER, "vocab_size": words, "max_position_embeddings": LONGEST, **marks, **more}


def clip(words, side, dropout, patch=8):
    from transformers import CLIPConfig, CLIPModel

    vision = {**TOWER, "image_size": side, "patch_size": patch, "attention_dropout": dropout}
    text = text_config(words, attention_dropout=dropout)
    return CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8))


def siglip(words, side, dropout, patch=8):
    from transformers import SiglipConfig, SiglipModel

    vision = {**TOWER, "image_size": side, "patch_size": patch, "attention_dropout": dropout}
    return SiglipModel(SiglipConfig(text_config=text_config(words, projection_size=16), vision_config=vision))


KINDS = {"clip": clip, "siglip": siglip}


def write_model(folder, kind="clip", *, words=WORDS, side=16, dropout=0.0, seed=0, patch=8):
    """The folder of a tiny model of that kind."""
    folder.mkdir(parents=True, exist_ok=True)
    count = write_tokenizer(folder, words)
    write_processor(folder, side, crops=kind == "clip")
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        KINDS[kind](count, side, dropout, patch).save_pretrained(folder)
    return folder
