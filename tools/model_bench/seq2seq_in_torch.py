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
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

TOKENS, WIDTH = 8000, 512
MODELS = ["seq2seq_gru_bahdanau", "seq2seq_lstm_luong"]
SKIFF_FORMS = ["attention_decoder", "dynamic_rnn"]
TORCH_FORMS = ["eager", "compiled"]
# With these, malloc keeps freed blocks in the process, as Skiff's allocator does.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 32), "MALLOC_TRIM_THRESHOLD_": str(1 << 33),
          "MALLOC_TOP_PAD_": str(1 << 28)}


def resident_megabytes():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20


def peak_megabytes():
    with open("/proc/self/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM:")) / 1024


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

        def forward(self, source, given):
            encoded = self.encoder(self.source_table(source))[0].transpose(0, 1)
            keys, words = self.keys(encoded), self.target_table(given)
            state, states = encoded[:, -1], []
            cell = torch.zeros_like(state)
            for word in words:
                query = self.query(state)
                if is_additive:
                    scores = self.score(torch.tanh(keys + query.unsqueeze(1))).squeeze(2)
                else:
                    scores = torch.bmm(keys, query.unsqueeze(2)).squeeze(2)
                context = torch.bmm(torch.softmax(scores, 1).unsqueeze(1), encoded).squeeze(1)
                x = torch.cat([word, context], 1)
                if is_lstm:
                    state, cell = self.cell(x, (state, cell))
                else:
                    state = self.cell(x, state)
                states.append(state)
            return self.scores(torch.stack(states).flatten(0, 1))

    return Network()


def torch_step(torch, model, form, options):
    """Returns a function that runs a training step."""
    network = torch_network(torch, model)
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-3, fused=True)
    run = torch.compile(network) if form == "compiled" else network
    source, given, label = (torch.randint(0, TOKENS, (options.length, options.batch_size)) for _ in range(3))

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(run(source, given), label.flatten()).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 5.0, foreach=True)
        optimizer.step()

    return step


def time_torch(model, form, options):
    """Prints {"step_ms", "step_cpu_ms", "model_rss_mb"}."""
    import torch  # after the number of threads is set

    torch.set_num_threads(options.threads)
    torch.mm(torch.rand(512, 512), torch.rand(512, 512))  # what the first product makes, any model has
    before = resident_megabytes()
    step = torch_step(torch, model, form, options)
    for _ in range(3):
        step()
    times = []
    cpu = time.process_time()
    for _ in range(options.steps):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    print(json.dumps({"step_ms": 1e3 * statistics.median(times),
                      "step_cpu_ms": 1e3 * (time.process_time() - cpu) / options.steps,
                      "model_rss_mb": peak_megabytes() - before}))


def run_torch(model, form, options):
    command = [sys.executable, __file__, options.model_bench, "--torch", "--model=" + model, "--forms=" + form,
               "--batch_size=%d" % options.batch_size, "--length=%d" % options.length,
               "--threads=%d" % options.threads, "--steps=%d" % options.steps]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                                     env={**os.environ, **MALLOC}).stdout)


def run_skiff(model, form, options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        command = [options.model_bench, "--model=" + model, "--decoder=" + form, "--optimizer=plain_adam",
                   "--batch_size=%d" % options.batch_size, "--length=%d" % options.length, "--nosplit",
                   "--threads=%d" % options.threads, "--steps=%d" % options.steps, "--passes=" + options.passes,
                   "--json=" + path]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as f:
            return json.load(f)


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
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    if options.torch:
        time_torch(options.model, options.forms[0], options)
        return
    print("%d threads, %d sentences of %d tokens; milliseconds a step, megabytes above the start" %
          (options.threads, options.batch_size, options.length))
    print("%-40s %s" % ("", " ".join("%9s %9s" % (name, "of the op") for name in ("ms", "CPU ms", "MB"))))
    for model in MODELS:
        if options.model in ("", model):
            compare(model, options)


if __name__ == "__main__":
    main()
