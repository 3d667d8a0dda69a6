"""Exports small networks of PyTorch and transformers for fixtures_test.cc.

    python make_fixtures.py FOLDER [NAME...]

FOLDER/<name>.onnx, and <name>.npz with the inputs by their names, what ONNX Runtime computes from
them, "expected", and the losses of four steps of training in PyTorch, "losses": the mean square of
the output, SGD with a rate of 0.05. A fixture whose exporter folds parameters has no losses. Needs
torch, transformers, onnx, onnxscript and onnxruntime. README.md in
fixtures/ says which versions made the files there.
"""

import pathlib
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from torch import nn
from torch.nn import functional

VOCABULARY = 16
TEXT = {0: "batch", 1: "length"}
IMAGE = {0: "batch"}


class FirstOutput(nn.Module):
    """A model of transformers that takes its inputs by place and gives its first output."""

    def __init__(self, model, names):
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), return_dict=False)[0]


class PackedBlock(nn.Module):
    """A block of a vision transformer as timm has it: one projection, cut along a dim of 3."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        packed = self.qkv(self.norm(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        query, key, value = packed.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.proj(mixed.transpose(1, 2).reshape(batch, length, width))
        return functional.hardswish(self.gate(x)) * functional.mish(x)


def ids():
    return torch.randint(3, VOCABULARY, (2, 5))


def padding():
    return torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def bert(attention):
    config = transformers.BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
        attn_implementation=attention,
    )
    inputs = {"ids": ids(), "mask": padding(), "kinds": torch.randint(0, 2, (2, 5))}
    names = ["input_ids", "attention_mask", "token_type_ids"]
    model = transformers.BertModel(config, add_pooling_layer=False)
    return FirstOutput(model, names), inputs, TEXT


def gpt2(attention):
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_embd=8,
        n_layer=1,
        n_head=2,
        n_positions=8,
        use_cache=False,
        attn_implementation=attention,
    )
    inputs = {"ids": ids(), "mask": padding()}
    return FirstOutput(transformers.GPT2Model(config), ["input_ids", "attention_mask"]), inputs, TEXT


def llama(attention):
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=16,
        max_position_embeddings=8,
        use_cache=False,
        attn_implementation=attention,
    )
    return FirstOutput(transformers.LlamaModel(config), ["input_ids"]), {"ids": ids()}, TEXT


def vit():
    return PackedBlock(8, 2), {"x": torch.randn(2, 5, 8)}, IMAGE


def resnet():
    config = transformers.ResNetConfig(
        embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic"
    )
    model = FirstOutput(transformers.ResNetModel(config), ["pixel_values"])
    return model, {"image": torch.randn(2, 3, 16, 16)}, IMAGE


# Name: the network, whether torch.export traces it (else TorchScript does), the opset.
FIXTURES = {
    "bert_eager_11": (lambda: bert("eager"), False, 11),
    "bert_sdpa_14": (lambda: bert("sdpa"), False, 14),
    "bert_sdpa_18": (lambda: bert("sdpa"), True, 18),
    "bert_sdpa_23": (lambda: bert("sdpa"), True, 23),
    "gpt2_eager_17": (lambda: gpt2("eager"), False, 17),
    "gpt2_sdpa_20": (lambda: gpt2("sdpa"), True, 20),
    "llama_eager_18": (lambda: llama("eager"), True, 18),
    "vit_17": (vit, False, 17),
    "resnet_13": (resnet, False, 13),
    "resnet_18": (resnet, True, 18),
}


def randomize(model):
    """Sets weights that no exporter can join or leave out: none are equal or 0."""
    for name, parameter in model.named_parameters():
        is_scale = parameter.dim() == 1 and name.endswith("weight")
        values = 0.3 * torch.randn(parameter.shape) + (1 if is_scale else 0)
        parameter.data.copy_(values)
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.copy_(0.3 * torch.randn(buffer.shape))
        if name.endswith("running_var"):
            buffer.copy_(0.5 + torch.rand(buffer.shape))


def export(model, inputs, dims, by_tracing, opset, path):
    if by_tracing:
        sizes = {axis: torch.export.Dim(name) for axis, name in dims.items()}
        shapes = tuple(sizes for _ in inputs)
        options = {
            "dynamo": True,
            "verbose": False,
            # forward(*inputs) has one argument, a tuple.
            "dynamic_shapes": (shapes,) if isinstance(model, FirstOutput) else shapes,
        }
    else:
        options = {"dynamo": False, "dynamic_axes": {name: dims for name in inputs}}
    torch.onnx.export(
        model,
        tuple(inputs.values()),
        path,
        input_names=list(inputs),
        output_names=["y"],
        opset_version=opset,
        **options,
    )


def strip(model):
    """Takes out what only people read."""
    del model.metadata_props[:]
    del model.graph.value_info[:]
    del model.graph.metadata_props[:]
    for node in model.graph.node:
        node.ClearField("doc_string")
        node.ClearField("name")
        del node.metadata_props[:]
    return model


def train(model, inputs):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(4):
        loss = model(*inputs.values()).square().mean()
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return np.array(losses, dtype=np.float32)


def make(name, folder):
    build, by_tracing, opset = FIXTURES[name]
    torch.manual_seed(len(name))
    model, inputs, dims = build()
    model.eval()
    randomize(model)
    with tempfile.TemporaryDirectory() as temporary:
        path = str(pathlib.Path(temporary, "model.onnx"))
        export(model, inputs, dims, by_tracing, opset, path)
        stripped = strip(onnx.load(path))
    target = folder / f"{name}.onnx"
    onnx.save(stripped, target)
    arrays = {key: value.numpy() for key, value in inputs.items()}
    session = onnxruntime.InferenceSession(str(target), providers=["CPUExecutionProvider"])
    [expected] = session.run(None, arrays)
    own = model(*inputs.values()).detach().numpy()
    if not name.startswith("resnet"):
        arrays["losses"] = train(model, inputs)
    np.savez(folder / f"{name}.npz", **arrays, expected=expected)
    print(f"{name}: {target.stat().st_size} bytes, PyTorch differs by {np.abs(own - expected).max():.2g}")


def main():
    warnings.filterwarnings("ignore")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or FIXTURES:
        make(name, folder)


if __name__ == "__main__":
    main()
