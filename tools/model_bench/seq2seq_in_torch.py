#!/usr/bin/env python3
"""Times training steps of a translation model beside the same model of PyTorch, in turn.

    bazel build --config=opt //tools/model_bench
    tools/model_bench/seq2seq_in_torch.py bazel-bin/tools/model_bench/model_bench --threads=2

Needs PyTorch. The models are seq2seq_gru_bahdanau and seq2seq_lstm_luong of model_bench: a recurrent encoder, a decoder
that attends to its states before each step, the scores of 8,000 tokens, Adam with clipping by the global norm. PyTorch's
is written with nn.GRU or nn.LSTM, nn.GRUCell or nn.LSTMCell and torch.bmm; it runs eagerly and through torch.compile,
with fused Adam. Skiff runs its decoder as one op and as a loop of layers. Columns are milliseconds a step, those of
processor time, and the peak memory in megabytes above what the process holds before it makes the model, each the least
of the rounds; PyTorch's memory when it compiles includes the compiler's. On a machine that others use, look at the
processor time on one thread; threads also spend it waiting. Each side runs in a process of its own.

--sentences=SOURCE,TARGET takes the lengths of real sentences, words between white space: batches of about the same
length, as trainings make them, of which --batches are timed. PyTorch packs the sequences of its encoder, and its
decoder masks what the longest sentence of a batch has more. Its step then is the mean of all batches, and so is
Skiff's, after an untimed round on both sides. PyTorch compiles only its decoder, again for each number of tokens.
"""

import argparse
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "benchmark"))
import torch_side

TOKENS, WIDTH = 8000, 512
MODELS = ["seq2seq_gru_bahdanau", "seq2seq_lstm_luong"]
SKIFF_FORMS = ["attention_decoder", "dynamic_rnn"]
TORCH_FORMS = ["eager", "compiled"]


def torch_network(torch, model):
    """Returns a module that takes source [time, batch] and given [time, batch] and returns scores [rows, tokens]."""
    nn, is_lstm, is_additive = torch.nn, "lstm" in model, "bahdanau" in model

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.source_table, self.target_table = nn.Embedding(TOKENS, WIDTH), nn.Embedding(TOKENS, WIDTH)
            self.encoder = (nn.LSTM if is_lstm else nn.GRU)(WIDTH, WIDTH)
            self.cell = (nn.LSTMCell if is_lstm else nn.GRUCell)(2 * WIDTH, WIDTH)
            self.keys = nn.Linear(WIDTH, WIDTH, bias=False)
            self.query = nn.Linear(WIDTH, WIDTH)
            self.score = nn.Linear(WIDTH, 1, bias=False)
            self.scores = nn.Linear(WIDTH, TOKENS)

        def encode(self, source, lengths):
            """Returns all states [batch, time, width], the last ones, and what must not be looked at."""
            words = self.source_table(source)
            if lengths is None:
                encoded = self.encoder(words)[0].transpose(0, 1)
                return encoded, encoded[:, -1], None
            packed = nn.utils.rnn.pack_padded_sequence(words, lengths, enforce_sorted=False)
            encoded = nn.utils.rnn.pad_packed_sequence(self.encoder(packed)[0])[0].transpose(0, 1)
            last = encoded[torch.arange(len(lengths)), lengths - 1]
            return encoded, last, torch.arange(encoded.shape[1]) >= lengths.unsqueeze(1)

        def forward(self, source, given, lengths=None, chosen=None):
            encoded, state, hidden = self.encode(source, lengths)
            return self.decode(encoded, state, hidden, given, chosen)

        def decode(self, encoded, state, hidden, given, chosen):
            keys, words, states = self.keys(encoded), self.target_table(given), []
            cell = torch.zeros_like(state)
            for word in words:
                query = self.query(state)
                if is_additive:
                    scores = self.score(torch.tanh(keys + query.unsqueeze(1))).squeeze(2)
                else:
                    scores = torch.bmm(keys, query.unsqueeze(2)).squeeze(2)
                if hidden is not None:
                    scores = scores.masked_fill(hidden, float("-inf"))
                context = torch.bmm(torch.softmax(scores, 1).unsqueeze(1), encoded).squeeze(1)
                x = torch.cat([word, context], 1)
                if is_lstm:
                    state, cell = self.cell(x, (state, cell))
                else:
                    state = self.cell(x, state)
                states.append(state)
            states = torch.stack(states).flatten(0, 1)
            return self.scores(states if chosen is None else states[chosen])

    return Network()


def lengths_of_batches(options):
    """Returns the lengths of source and target of each pair, batch after batch. Pairs with an empty side are left out.

    Raises ValueError unless --sentences names two files with equally many lines.
    """
    paths = options.sentences.split(",")
    if len(paths) != 2:
        raise ValueError("--sentences=%s: found %d files, expected two" % (options.sentences, len(paths)))
    sides = []
    for path in paths:
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
            sides.append([len(line.split()) for line in f])
    if len(sides[0]) != len(sides[1]):
        raise ValueError("--sentences=%s: found %d and %d lines, expected equally many" %
                         (options.sentences, len(sides[0]), len(sides[1])))
    pairs = [pair for pair in zip(*sides) if all(pair)]
    random.Random(1).shuffle(pairs)
    part, batches = 16 * options.batch_size, []
    for first in range(0, len(pairs) - part + 1, part):
        pool = sorted(pairs[first:first + part], key=sum)
        batches += [pool[i:i + options.batch_size] for i in range(0, part, options.batch_size)]
    random.Random(2).shuffle(batches)
    return batches[:options.batches]


def write_pairs(path, batches):
    with open(path, "w", encoding="utf-8") as f:
        f.writelines("%d %d\n" % pair for batch in batches for pair in batch)


def torch_batches(torch, options):
    """Returns the arguments of the network for each batch, and the labels."""
    if not options.sentences:
        source, given, label = (torch.randint(0, TOKENS, (options.length, options.batch_size)) for _ in range(3))
        return [((source, given), label.flatten())]
    batches = []
    for pairs in lengths_of_batches(options):
        sources, targets = (torch.tensor(side) for side in zip(*pairs))
        source = torch.randint(0, TOKENS, (int(sources.max()), len(pairs)))
        given = torch.randint(0, TOKENS, (int(targets.max()), len(pairs)))
        chosen = (torch.arange(len(given)).unsqueeze(1) < targets).flatten().nonzero().squeeze(1)
        batches.append(((source, given, sources, chosen), torch.randint(0, TOKENS, (len(chosen),))))
    return batches


def torch_step(torch, model, form, batches, options):
    """Returns a function that runs a training step with batch i."""
    network = torch_network(torch, model)
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-3, fused=True)
    run = network
    if form == "compiled":
        if not options.sentences:
            run = torch.compile(network)
        else:
            # The decoder is compiled for each number of tokens; packed sequences are not for the compiler.
            torch._dynamo.config.cache_size_limit = 256
            network.decode = torch.compile(network.decode, dynamic=True)

    def step(i):
        arguments, labels = batches[i % len(batches)]
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(run(*arguments), labels).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 5.0, foreach=True)
        optimizer.step()

    return step


def time_torch(model, form, options):
    """Prints {"step_ms", "step_cpu_ms", "model_rss_mb"}."""
    import torch  # after the number of threads is set

    torch.set_num_threads(options.threads)
    torch.mm(torch.rand(512, 512), torch.rand(512, 512))  # what the first product makes, any model has
    before = torch_side.resident_megabytes()
    batches = torch_batches(torch, options)
    step = torch_step(torch, model, form, batches, options)
    for i in range(max(3, len(batches))):
        step(i)
    times = []
    cpu = time.process_time()
    steps = len(batches) if options.sentences else options.steps
    for i in range(steps):
        start = time.perf_counter()
        step(i)
        times.append(time.perf_counter() - start)
    print(json.dumps({"step_ms": 1e3 * (statistics.mean if options.sentences else statistics.median)(times),
                      "step_cpu_ms": 1e3 * (time.process_time() - cpu) / steps,
                      "model_rss_mb": torch_side.peak_megabytes() - before}))


def run_torch(model, form, options):
    command = [sys.executable, __file__, options.model_bench, "--torch", "--model=" + model, "--forms=" + form,
               "--batch_size=%d" % options.batch_size, "--length=%d" % options.length,
               "--threads=%d" % options.threads, "--steps=%d" % options.steps, "--sentences=" + options.sentences,
               "--batches=%d" % options.batches]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                                     env={**os.environ, **torch_side.MALLOC}).stdout)


def run_skiff(model, form, options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        command = [options.model_bench, "--model=" + model, "--decoder=" + form, "--optimizer=plain_adam",
                   "--batch_size=%d" % options.batch_size, "--nosplit", "--threads=%d" % options.threads,
                   "--passes=" + options.passes, "--json=" + path]
        if options.sentences:
            batches = lengths_of_batches(options)
            pairs = os.path.join(folder, "pairs.txt")
            write_pairs(pairs, batches)
            command += ["--pairs=" + pairs, "--steps=%d" % len(batches)]
        else:
            command += ["--length=%d" % options.length, "--steps=%d" % options.steps]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as f:
            figures = json.load(f)
        figures["step_ms"] = figures["step_ms_mean" if options.sentences else "step_ms"]
        return figures


def compare(model, options):
    """Prints the lines of a model."""
    figures = {form: [] for form in options.forms}
    for _ in range(options.rounds):
        for form, runs in figures.items():
            runs.append((run_torch if form in TORCH_FORMS else run_skiff)(model, form, options))
    least = {form: [min(run[name] for run in runs) for name in ("step_ms", "step_cpu_ms", "model_rss_mb")]
             for form, runs in figures.items()}
    fused = least.get(SKIFF_FORMS[0], [float("nan")] * 3)
    for form, values in least.items():
        print("%-20s  %-18s %s" % (model, form, " ".join("%9.1f %9.2f" % (value, value / of_op)
                                                         for value, of_op in zip(values, fused))), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0], allow_abbrev=False)
    parser.add_argument("model_bench", help="the binary")
    parser.add_argument("--model", default="", choices=["", *MODELS], help="default: all")
    parser.add_argument("--forms", default=",".join(SKIFF_FORMS + TORCH_FORMS),
                        help="with commas between them (default %(default)s)")
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--length", type=int, default=30, help="tokens of a sentence on each side (default 30)")
    parser.add_argument("--sentences", default="", metavar="SOURCE,TARGET",
                        help="two files (.gz too) with a sentence a line, whose lengths the batches have")
    parser.add_argument("--batches", type=int, default=32, help="with --sentences: that are timed (default 32)")
    parser.add_argument("--write_pairs", default="", metavar="FILE",
                        help="with --sentences: write their numbers of tokens there, for --pairs of model_bench, and end")
    parser.add_argument("--threads", type=int, default=1, help="of all (default 1)")
    parser.add_argument("--steps", type=int, default=20, help="timed ones of a run (default 20)")
    parser.add_argument("--rounds", type=int, default=3, help="in turn (default 3)")
    parser.add_argument("--passes", default="", help="of model_bench")
    parser.add_argument("--torch", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.forms = options.forms.split(",")
    for form in options.forms:
        if form not in SKIFF_FORMS + TORCH_FORMS:
            parser.error("--forms: found %s, expected some of %s" % (form, ", ".join(SKIFF_FORMS + TORCH_FORMS)))
    if options.write_pairs and not options.sentences:
        parser.error("--write_pairs=%s: expected --sentences as well" % options.write_pairs)
    if options.sentences:
        try:
            batches = lengths_of_batches(options)
        except (OSError, ValueError) as error:
            parser.error(str(error))
        if not batches:
            parser.error("--sentences=%s: found fewer than %d pairs, expected at least 16 batches" %
                         (options.sentences, 16 * options.batch_size))
        if options.write_pairs:
            write_pairs(options.write_pairs, batches)
            return
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    if options.torch:
        time_torch(options.model, options.forms[0], options)
        return
    tokens = "as many tokens as those of " + options.sentences if options.sentences else "%d tokens" % options.length
    print("%d threads, %d sentences of %s; milliseconds a step, megabytes above the start" %
          (options.threads, options.batch_size, tokens))
    print("%-40s %s" % ("", " ".join("%9s %9s" % (name, "of the op") for name in ("ms", "CPU ms", "MB"))))
    for model in MODELS:
        if options.model in ("", model):
            compare(model, options)


if __name__ == "__main__":
    main()
