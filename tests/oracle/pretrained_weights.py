#!/usr/bin/env python3
"""Converts models of transformers, torchvision and timm by `skiff convert`, and compares the results.

usage: PYTHONPATH=FOLDER_OF_SKIFF pretrained_weights.py BAZEL_BIN [--only=NAME,NAME] [--bert=FOLDER]

Every model has random weights and running statistics, so that no tensor can be mistaken for another. For BERT and
ERNIE the hidden states and pooled vectors are compared, of sequences with padding, and scores of words and sentences
where there are some; for ResNets the logits. --bert=FOLDER compares a BERT with real weights instead.

Differences are relative to the largest number. Exit status: 0, 1 if a difference is larger than 1e-5, 2 if it can't be
checked. Needs numpy<2, torch, transformers, torchvision, timm, safetensors, and the Python that skiff is built for.
"""
import os
import subprocess
import sys
import tempfile

if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    print(__doc__)
    sys.exit(0 if sys.argv[1:] == ["--help"] else 2)

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import numpy as np
    import skiff
    import timm
    import torch
    import torchvision
    import transformers
    from safetensors.torch import load_file, save_file
except ImportError as error:
    print("%s can't do it (%s); see --help" % (sys.executable, error), file=sys.stderr)
    sys.exit(2)
from comparison import largest_difference

BOUND = 1e-5
SEQUENCES, LENGTH, MASKED = 4, 48, 20
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TINY = {"vocab_size": 3000, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 512}


def randomize(model):
    """Parameters and statistics as large as trained ones have them: deep networks must not overflow."""
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point():
            continue
        if name.endswith("running_var"):
            tensor.uniform_(0.5, 1.5)
        elif tensor.dim() == 1:
            is_scale = name.endswith("weight")
            tensor.normal_(1.0 if is_scale else 0.0, 0.2)
        else:
            # A sum over the inputs of a unit keeps its size.
            fan_in = tensor[0].numel() if "embeddings" not in name else 1
            tensor.normal_(0.0, fan_in ** -0.5)
    return model.eval()


def convert(bazel_bin, source, output, kind, *flags):
    """What `skiff convert` says."""
    command = [os.path.join(bazel_bin, "tools/skiff/skiff"), "convert", source, "--from=" + kind, "--output=" + output,
               *flags]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def run_in_skiff(folder, feeds):
    executor = skiff.Executor()
    model = skiff.load_inference_model(folder, executor.scope)
    step = executor.compile(model.program)
    return step.run({name: feeds[name] for name in model.feed_names}, model.fetch_names)


def write_vocabulary(folder, size):
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as f:
        f.write("".join(token + "\n" for token in [*SPECIAL, *("word%d" % i for i in range(len(SPECIAL), size))]))


def text_feeds(config, draw, length=LENGTH):
    lengths = draw.integers(length // 2, length + 1, SEQUENCES)
    shape = (SEQUENCES, length)
    masked = min(MASKED, length)
    places = np.stack([draw.choice(length, masked, replace=False) for _ in range(SEQUENCES)])
    return {"token_ids": draw.integers(0, config.vocab_size, shape),
            "sentence_ids": draw.integers(0, config.type_vocab_size, shape),
            "position_ids": np.tile(np.arange(length), (SEQUENCES, 1)),
            "task_ids": np.full(shape, 1),
            "input_mask": (np.arange(length) < lengths[:, None]).astype(np.float32),
            "masked_positions": places + length * np.arange(SEQUENCES)[:, None]}


def encoder_outputs(model, feeds):
    """In the order in which the converted model returns them."""
    given = {"input_ids": feeds["token_ids"], "token_type_ids": feeds["sentence_ids"],
             "attention_mask": feeds["input_mask"].astype(np.int64)}
    if getattr(model.config, "use_task_id", False):
        given["task_type_ids"] = feeds["task_ids"]
    given = {name: torch.tensor(array) for name, array in given.items()}
    with torch.no_grad():
        encoder = getattr(model, model.base_model_prefix, model)
        encoded = encoder(**given)
        outputs = [encoded.last_hidden_state]
        if encoded.pooler_output is not None:
            outputs.append(encoded.pooler_output)
        if not hasattr(model, "cls") and not hasattr(model, "classifier"):
            return outputs
        scored = model(**given)
    if hasattr(scored, "seq_relationship_logits"):
        outputs.append(scored.seq_relationship_logits)
    if hasattr(model, "classifier"):
        return outputs + [torch.softmax(scored.logits, -1)]
    words = scored.prediction_logits if hasattr(scored, "prediction_logits") else scored.logits
    return [words.flatten(0, 1)[torch.tensor(feeds["masked_positions"]).flatten()], *outputs]


def check_text(bazel_bin, folder, model, kind, length=LENGTH):
    source, output = os.path.join(folder, "source"), os.path.join(folder, "output")
    if model is not None:
        model.save_pretrained(source, max_shard_size="1MB" if model.config.num_hidden_layers == 2 else "10GB")
        write_vocabulary(source, model.config.vocab_size)
    print(convert(bazel_bin, source, output, kind, "--length=%d" % length), end="")
    feeds = text_feeds(model.config, np.random.default_rng(1), length)
    return run_in_skiff(output, feeds), [x.numpy() for x in encoder_outputs(model, feeds)]


def check_image(bazel_bin, folder, model, kind):
    source, output = os.path.join(folder, "source"), os.path.join(folder, "output")
    if kind == "hf-resnet":
        model.save_pretrained(source)
    else:
        os.mkdir(source)
        save_file(model.state_dict(), os.path.join(source, "model.safetensors"))
    print(convert(bazel_bin, source, output, kind), end="")
    image = np.random.default_rng(1).standard_normal((2, 3, 224, 224), np.float32)
    with torch.no_grad():
        logits = model(torch.tensor(image))
    logits = getattr(logits, "logits", logits)
    return run_in_skiff(output, {"image": image}), [torch.softmax(logits, -1).numpy(), logits.numpy()]


def text_case(class_name, kind, **changes):
    def case(bazel_bin, folder):
        model_class = getattr(transformers, class_name)
        config = model_class.config_class(**{**TINY, **changes})
        return check_text(bazel_bin, folder, randomize(model_class(config)), kind)
    return case


def image_case(make, kind):
    return lambda bazel_bin, folder: check_image(bazel_bin, folder, randomize(make()), kind)


def hugging_face_resnet(depth):
    layers = {18: ("basic", [2, 2, 2, 2], [64, 128, 256, 512]),
              50: ("bottleneck", [3, 4, 6, 3], [256, 512, 1024, 2048])}
    kind, depths, widths = layers[depth]
    return transformers.ResNetForImageClassification(transformers.ResNetConfig(
        depths=depths, hidden_sizes=widths, layer_type=kind, num_labels=1000))


BASE = {"vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072}
CASES = {
    "bert-tiny": text_case("BertModel", "hf-bert"),
    "bert-tiny pre-trained": text_case("BertForPreTraining", "hf-bert"),
    "bert-tiny words": text_case("BertForMaskedLM", "hf-bert"),
    "bert-tiny classes": text_case("BertForSequenceClassification", "hf-bert", num_labels=3),
    "bert-tiny gelu_new": text_case("BertForPreTraining", "hf-bert", hidden_act="gelu_new", layer_norm_eps=1e-3),
    "bert-base": text_case("BertModel", "hf-bert", **BASE),
    "ernie-tiny": text_case("ErnieModel", "hf-ernie"),
    "ernie-tiny tasks": text_case("ErnieForPreTraining", "hf-ernie", use_task_id=True),
    "torchvision resnet18": image_case(torchvision.models.resnet18, "torchvision"),
    "torchvision resnet50": image_case(torchvision.models.resnet50, "torchvision"),
    "timm resnet18": image_case(lambda: timm.create_model("resnet18"), "timm"),
    "timm resnet50": image_case(lambda: timm.create_model("resnet50"), "timm"),
    "transformers resnet18": image_case(lambda: hugging_face_resnet(18), "hf-resnet"),
    "transformers resnet50": image_case(lambda: hugging_face_resnet(50), "hf-resnet"),
}


def real_bert(source):
    """A case of real weights. The folder has config.json, weights and vocab.txt."""
    def case(bazel_bin, folder):
        model = transformers.BertModel.from_pretrained(source).eval()
        os.symlink(os.path.abspath(source), os.path.join(folder, "source"))
        output = os.path.join(folder, "output")
        print(convert(bazel_bin, source, output, "hf-bert", "--length=%d" % LENGTH), end="")
        feeds = text_feeds(model.config, np.random.default_rng(1))
        return run_in_skiff(output, feeds), [x.numpy() for x in encoder_outputs(model, feeds)]
    return case


def difference(found, expected):
    if len(found) != len(expected):
        return float("inf")
    return max(largest_difference(*pair) for pair in zip(found, expected))


def main(bazel_bin, flags):
    options = dict(flag.lstrip("-").split("=", 1) for flag in flags)
    cases = dict(CASES)
    if "bert" in options:
        cases = {options["bert"]: real_bert(options["bert"])}
    elif "only" in options:
        cases = {name: CASES[name] for name in options["only"].split(",")}
    table = []
    for name, case in cases.items():
        torch.manual_seed(1)
        print("--- " + name)
        with tempfile.TemporaryDirectory() as folder:
            try:
                table.append((name, difference(*case(os.path.abspath(bazel_bin), folder))))
            except (OSError, subprocess.CalledProcessError) as error:
                print(error, file=sys.stderr)
                return 2
    print("\nlargest differences, relative to the largest number; bound %.0e" % BOUND)
    for name, value in table:
        print("%-24s %.1e%s" % (name, value, "" if value <= BOUND else "  too large"))
    return 0 if all(value <= BOUND for _, value in table) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
