#!/usr/bin/env python3
"""Times training steps of a model of model_bench in PyTorch and prints its figures.

The figures are {"step_ms", "model_rss_mb", "torch"}; model_rss_mb is the peak of resident memory
above what the process held before it built the model, in MiB, as in model_bench.

    tools/model_bench/model_in_torch.py --model=resnet50 --batch_size=64 --device=cuda
    tools/model_bench/model_in_torch.py --model=resnet50 --batch_size=8 --device=cpu --threads=1 \
        --precision=bfloat16 --channels_last --compile=default

Needs PyTorch. The network, the sizes and the optimizer are those of model_bench; initial values
are PyTorch's, which doesn't change times. A step copies its batch to the device, goes forward and
backward, updates the parameters, and ends when the loss is on the host, as in model_bench.
Under torchrun, each process is a rank that takes a batch of its own, and gradients are averaged by
DistributedDataParallel over gloo:

    torchrun --nproc_per_node=2 tools/model_bench/model_in_torch.py --model=resnet18 --device=cpu \
        --threads=1

PyTorch chooses its fastest convolutions. --precision=bfloat16 is torch.autocast, whose parameters
are float32; tf32 lets products and convolutions of float32 on a device round what they multiply.
"""

import argparse
import json
import os
import statistics
import time

import recurrent_in_torch
import seq2seq_in_torch
import torch_side

ERNIE_TOKENS, ERNIE_WIDTH, ERNIE_LAYERS, ERNIE_HEADS = 8000, 256, 4, 4
ERNIE_POSITIONS, ERNIE_PADDING, ERNIE_MASKED = 512, 8, 20
CHARACTERS, CHARACTER_WIDTH, CHARACTER_STATES = 65, 64, 256
# By depth: whether blocks are bottlenecks; widths of the stages, and their numbers of blocks.
RESNETS = {18: (False, [64, 128, 256, 512], [2, 2, 2, 2]), 20: (False, [16, 32, 64], [3, 3, 3]),
           50: (True, [64, 128, 256, 512], [3, 4, 6, 3])}
VGG16_STAGES = [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]


def mlp(torch):
    nn = torch.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(),
                         nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


def lenet(torch):
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


def conv_norm(torch, inputs, outputs, kernel, stride=1):
    """Returns the layers of a convolution with batch normalisation, which makes a bias useless."""
    return [torch.nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False),
            torch.nn.BatchNorm2d(outputs)]


def conv_norm_relu(torch, inputs, outputs, kernel, stride=1):
    return [*conv_norm(torch, inputs, outputs, kernel, stride), torch.nn.ReLU(inplace=True)]


def residual_block(torch, is_bottleneck, inputs, width, stride):
    nn, outputs = torch.nn, 4 * width if is_bottleneck else width

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            if is_bottleneck:
                layers = [*conv_norm_relu(torch, inputs, width, 1),
                          *conv_norm_relu(torch, width, width, 3, stride),
                          *conv_norm(torch, width, outputs, 1)]
            else:
                layers = [*conv_norm_relu(torch, inputs, width, 3, stride),
                          *conv_norm(torch, width, outputs, 3)]
            self.body = nn.Sequential(*layers)
            self.shortcut = nn.Identity()
            if stride != 1 or inputs != outputs:
                self.shortcut = nn.Sequential(*conv_norm(torch, inputs, outputs, 1, stride))

        def forward(self, x):
            return torch.relu_(self.body(x) + self.shortcut(x))

    return Block(), outputs


def resnet(torch, depth, classes):
    nn = torch.nn
    is_bottleneck, widths, blocks = RESNETS[depth]
    channels = widths[0]
    if is_bottleneck:
        layers = [*conv_norm_relu(torch, 3, channels, 7, 2), nn.MaxPool2d(3, 2, 1)]
    else:
        layers = conv_norm_relu(torch, 3, channels, 3)
    for stage, (width, count) in enumerate(zip(widths, blocks)):
        for i in range(count):
            stride = 2 if i == 0 and stage > 0 else 1
            block, channels = residual_block(torch, is_bottleneck, channels, width, stride)
            layers.append(block)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(channels, classes))


def vgg16(torch):
    layers, channels = [], 3
    for filters, count in VGG16_STAGES:
        for _ in range(count):
            layers += conv_norm_relu(torch, channels, filters, 3)
            channels = filters
        layers.append(torch.nn.MaxPool2d(2))
    return torch.nn.Sequential(*layers, torch.nn.Flatten(), torch.nn.Linear(channels, 10))


def make_dropout(torch, probability):
    """Returns the layer; without a probability it costs nothing."""
    return torch.nn.Dropout(probability) if probability > 0 else torch.nn.Identity()


def attention(torch, queries, keys, values, mask, dropout):
    """Returns PyTorch's faster one: a CPU's fused one takes 1.4 times as long in bfloat16."""
    if queries.is_cuda:
        return torch.nn.functional.scaled_dot_product_attention(queries, keys, values,
                                                                attn_mask=mask, dropout_p=dropout)
    weights = queries * queries.shape[-1] ** -0.5 @ keys.transpose(-1, -2) + mask
    weights = weights.softmax(-1)
    return torch.nn.functional.dropout(weights, dropout) @ values


def ernie_layer(torch, dropout):
    nn, width = torch.nn, ERNIE_WIDTH

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            # One product for queries, keys and values: the faster form.
            self.projections, self.mixed = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.widened, self.narrowed = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.attended_norm, self.norm = nn.LayerNorm(width), nn.LayerNorm(width)
            self.drop = make_dropout(torch, dropout)

        def forward(self, x, mask):
            split = self.projections(x).unflatten(2, (3, ERNIE_HEADS, width // ERNIE_HEADS))
            queries, keys, values = split.permute(2, 0, 3, 1, 4)
            attended = attention(torch, queries, keys, values, mask, dropout)
            mixed = self.mixed(attended.transpose(1, 2).flatten(2))
            x = self.attended_norm(x + self.drop(mixed))
            narrowed = self.narrowed(torch.nn.functional.gelu(self.widened(x)))
            return self.norm(x + self.drop(narrowed))

    return Layer()


def ernie(torch, length, dropout):
    """Returns a module that takes the feeds of model_bench and returns the loss."""
    nn, width = torch.nn, ERNIE_WIDTH
    cross_entropy = nn.functional.cross_entropy

    class Ernie(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(ERNIE_TOKENS, width)
            self.positions = nn.Embedding(max(length, ERNIE_POSITIONS), width)
            self.sentences = nn.Embedding(2, width)
            self.norm = nn.LayerNorm(width)
            self.layers = nn.ModuleList([ernie_layer(torch, dropout)
                                         for _ in range(ERNIE_LAYERS)])
            self.drop = make_dropout(torch, dropout)
            self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width)
            self.word_bias = nn.Parameter(torch.zeros(ERNIE_TOKENS))
            self.pooled, self.next_sentence = nn.Linear(width, width), nn.Linear(width, 2)

        def forward(self, tokens, positions, sentences, is_token, places, words, sentence_labels):
            x = self.words(tokens) + self.positions(positions) + self.sentences(sentences)
            x = self.drop(self.norm(x))
            mask = is_token[:, None, None, :]
            if not x.is_cuda:
                mask = (~mask).float() * -1e4
            for layer in self.layers:
                x = layer(x, mask)
            masked = nn.functional.gelu(self.transform(x.flatten(0, 1)[places.flatten()]))
            scores = nn.functional.linear(self.transform_norm(masked), self.words.weight,
                                          self.word_bias)
            pair = self.next_sentence(self.drop(torch.tanh(self.pooled(x[:, 0]))))
            return cross_entropy(scores, words.flatten()) + cross_entropy(pair, sentence_labels)

    return Ernie()


def ernie_batch(torch, size, length):
    tokens = torch.randint(ERNIE_TOKENS, (size, length))
    positions = torch.arange(length).repeat(size, 1)
    places = torch.arange(ERNIE_MASKED) * (length - ERNIE_PADDING) // ERNIE_MASKED
    return [tokens, positions, (positions >= length // 2).long(),
            positions < length - ERNIE_PADDING, torch.arange(size)[:, None] * length + places,
            torch.randint(ERNIE_TOKENS, (size, ERNIE_MASKED)), torch.randint(2, (size,))]


def char_rnn(torch, cell):
    """Returns a module that takes characters [time, batch] and starts from the states of before."""
    nn = torch.nn

    class CharRnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(CHARACTERS, CHARACTER_WIDTH)
            layer = nn.LSTM if cell == "lstm" else nn.GRU
            self.layer = layer(CHARACTER_WIDTH, CHARACTER_STATES)
            self.scores = nn.Linear(CHARACTER_STATES, CHARACTERS)
            self.states = None

        def forward(self, ids):
            x, states = self.layer(self.table(ids), self.states)
            # No gradient flows into the batch before.
            self.states = states.detach() if cell == "gru" else tuple(s.detach() for s in states)
            return self.scores(x).flatten(0, 1)

    return CharRnn()


CLASSIFIERS = {
    # The network, its image, and the number of classes.
    "mlp": (mlp, (1, 28, 28), 10),
    "lenet": (lenet, (1, 28, 28), 10),
    "resnet18": (lambda torch: resnet(torch, 18, 10), (3, 32, 32), 10),
    "resnet20": (lambda torch: resnet(torch, 20, 10), (3, 32, 32), 10),
    "resnet50": (lambda torch: resnet(torch, 50, 1000), (3, 224, 224), 1000),
    "vgg16": (vgg16, (3, 32, 32), 10),
}
MODELS = [*CLASSIFIERS, "ernie_mini", "ernie_mini_dropout", "char_lstm", "char_gru", "lstm_512",
          "gru_512", *seq2seq_in_torch.MODELS]


def make(torch, model, batch_size, length, prepare):
    """Returns the network, a batch on the CPU, and the function from such a batch to the loss.

    prepare(network) returns what trains in place of the network.
    """
    cross_entropy = torch.nn.functional.cross_entropy
    if model in CLASSIFIERS:
        build, image, classes = CLASSIFIERS[model]
        network = prepare(build(torch))
        batch = [torch.rand(batch_size, *image) * 2 - 1, torch.randint(classes, (batch_size,))]
        return network, batch, lambda x, labels: cross_entropy(network(x), labels)
    if model.startswith("ernie_mini"):
        length = length or 128
        network = prepare(ernie(torch, length, 0.1 if model == "ernie_mini_dropout" else 0.0))
        return network, ernie_batch(torch, batch_size, length), network
    if model.startswith("char_"):
        network = prepare(char_rnn(torch, model[len("char_"):]))
        batch = [torch.randint(CHARACTERS, (length or 64, batch_size)) for _ in range(2)]
        return network, batch, lambda ids, labels: cross_entropy(network(ids), labels.flatten())
    if model.startswith("seq2seq_"):
        network = prepare(seq2seq_in_torch.torch_network(torch, model))
        shape = (length or 30, batch_size)
        batch = [torch.randint(seq2seq_in_torch.TOKENS, shape) for _ in range(3)]
        return network, batch, lambda source, given, labels: cross_entropy(network(source, given),
                                                                           labels.flatten())
    layer, packed = recurrent_in_torch.torch_layer(torch, model.split("_")[0], batch_size)
    network = prepare(layer)
    return network, [packed], lambda x: network(x)[0].data.mean()


def make_update(torch, optimizer, parameters):
    """Returns a function that updates the parameters by their gradients."""
    clip = {"momentum": None, "adam": 1.0, "plain_adam": 5.0}[optimizer]
    if optimizer == "momentum":
        steps = torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4, foreach=True)
    elif optimizer == "adam":
        steps = torch.optim.Adam(parameters, lr=1e-4, weight_decay=1e-4, fused=True)
    else:
        steps = torch.optim.Adam(parameters, lr=1e-3, fused=True)

    def update():
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(parameters, clip, foreach=True)
        steps.step()
        steps.zero_grad(set_to_none=True)

    return update


def ranks():
    """Returns the number of processes that torchrun has started."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def make_step(torch, options):
    """Returns a function that runs a training step and waits for its end."""
    is_cuda = options.device == "cuda"

    def prepare(network):
        network.to(options.device).train()
        if options.channels_last:
            network.to(memory_format=torch.channels_last)
        return torch.nn.parallel.DistributedDataParallel(network) if ranks() > 1 else network

    network, batch, loss = make(torch, options.model, options.batch_size, options.length, prepare)
    if options.channels_last:
        batch = [x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x
                 for x in batch]
    if options.compile != "none":
        loss = torch.compile(loss, mode=options.compile)
    update = make_update(torch, options.optimizer, list(network.parameters()))
    if is_cuda:
        batch = [x.pin_memory() for x in batch]
    autocast = torch.autocast(options.device, dtype=torch.bfloat16,
                              enabled=options.precision == "bfloat16")

    def step():
        with autocast:
            found = loss(*(x.to(options.device, non_blocking=True) for x in batch))
        found.backward()
        update()
        # A copy that the device makes after the update, and that this waits for.
        found.item()

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0],
                                     allow_abbrev=False)
    parser.add_argument("--model", required=True, choices=MODELS)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--length", type=int, default=0,
                        help="tokens of a sequence; 0: as many as model_bench takes")
    parser.add_argument("--optimizer", default="momentum",
                        choices=["momentum", "adam", "plain_adam"], help="as in model_bench")
    parser.add_argument("--steps", type=int, default=10, help="timed ones, after 3 untimed ones")
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=0, help="0: as many as PyTorch takes")
    parser.add_argument("--precision", default="float32", choices=["float32", "tf32", "bfloat16"])
    parser.add_argument("--channels_last", action="store_true", help="the memory format of images")
    parser.add_argument("--compile", default="none",
                        choices=["none", "default", "reduce-overhead", "max-autotune"],
                        help="torch.compile's mode; none: eager")
    options = parser.parse_args()
    if options.length and (options.model in CLASSIFIERS or options.model.endswith("_512")):
        parser.error("--length=%d: %s has no length here" % (options.length, options.model))
    if options.device == "cpu":
        torch_side.use_malloc()
    import torch  # after the flags have been checked

    if options.threads > 0:
        torch.set_num_threads(options.threads)
    allows_tf32 = options.precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allows_tf32
    torch.backends.cudnn.benchmark = True
    if ranks() > 1:
        torch.distributed.init_process_group("gloo" if options.device == "cpu" else "nccl")
    before_mb = torch_side.resident_megabytes()
    step = make_step(torch, options)
    for _ in range(3):
        step()
    times = []
    for _ in range(options.steps):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    if ranks() > 1:
        torch.distributed.destroy_process_group()
    if os.environ.get("RANK", "0") == "0":
        print(json.dumps({"step_ms": 1e3 * statistics.median(times),
                          "model_rss_mb": torch_side.peak_megabytes() - before_mb,
                          "ranks": ranks(), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
