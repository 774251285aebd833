"""A small CLIP with weights drawn anew, as a folder of transformers: to be trained from scratch.

    python examples/small_clip.py scenes small-clip --side 48
    truepair train scenes --model pretrained --encoder small-clip --tune full --tower-rate 1 --temperature method \\
        --learning-rate 1e-3 --schedule cosine --warm-up 0.1 --method crcl --noise 0.4 --out runs/small-clip

Its tokenizer knows the words of the captions. Needs: pip install 'truepair[hf]'
"""

import argparse
from collections import Counter
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import CLIPConfig, CLIPModel, PreTrainedTokenizerFast
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

import truepair

SPECIALS = ["<pad>", "<unk>", "<s>", "</s>"]


def write_tokenizer(captions: tuple[str, ...], folder: Path, longest: int) -> int:
    """Words seen twice or more, by spaces and punctuation; returns how many tokens there are."""
    splitter = pre_tokenizers.Whitespace()
    words = Counter(word for caption in captions for word, _ in splitter.pre_tokenize_str(caption.lower()))
    known = SPECIALS + sorted(word for word, count in words.items() if count > 1)
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(known)}, unk_token="<unk>"))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), splitter
    marks = [("<s>", 2), ("</s>", 3)]
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=marks)
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=longest, **names).save_pretrained(folder)
    return len(known)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="pairs whose captions the tokenizer is made of")
    parser.add_argument("folder", type=Path, help="folder to write, new")
    parser.add_argument("--side", type=int, default=48, help="pixels a side [48]")
    parser.add_argument("--patch", type=int, default=8, help="pixels a side of a patch [8]")
    parser.add_argument("--width", type=int, default=128, help="width of both towers [128]")
    parser.add_argument("--layers", type=int, default=2, help="layers of both towers [2]")
    parser.add_argument("--longest", type=int, default=32, help="most tokens of a caption [32]")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    words = write_tokenizer(truepair.load(options.data).texts.captions, options.folder, options.longest)
    size = {"height": options.side, "width": options.side}
    CLIPImageProcessorPil(size={"shortest_edge": options.side}, crop_size=size).save_pretrained(options.folder)
    tower = {
        "hidden_size": options.width,
        "intermediate_size": 4 * options.width,
        "num_hidden_layers": options.layers,
        "num_attention_heads": max(1, options.width // 32),
    }
    marks = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    torch.manual_seed(options.seed)
    config = CLIPConfig(
        text_config={**tower, **marks, "vocab_size": words, "max_position_embeddings": options.longest},
        vision_config={**tower, "image_size": options.side, "patch_size": options.patch},
        projection_dim=options.width,
    )
    model = CLIPModel(config)
    model.save_pretrained(options.folder)
    print(f"{options.folder}: {sum(each.numel() for each in model.parameters()):,} parameters, {words:,} tokens")


if __name__ == "__main__":
    main()
