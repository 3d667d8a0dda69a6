#!/usr/bin/env python3
"""Times the memory cases of op_bench beside the same operations of PyTorch, in turn.

    bazel build --config=opt //tools/op_bench
    tools/op_bench/compare_with_torch.py bazel-bin/tools/op_bench/op_bench --threads=2

Needs PyTorch. Both write into memory that they have written before, so neither pays for page faults: op_bench reuses
its outputs; PyTorch gets `out=` where an operation has it, and otherwise a malloc that keeps freed blocks. The last
column is Skiff's share of the bandwidth of a = b + 3 c; the last line names the cases that PyTorch computes faster by
more than 5 %.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "benchmark"))
import torch_side


def operations(torch):
    """Returns {op/case: function that makes the inputs and returns the function to time}."""
    f = torch.nn.functional
    table = {}

    def add(name, make):
        table[name] = make

    def unary(name, forward, backward):
        def make_forward():
            x, out = torch.rand(1 << 24) + 0.1, torch.empty(1 << 24)
            return lambda: forward(x, out)

        def make_backward():
            x, gradient = torch.rand(1 << 24) + 0.1, torch.rand(1 << 24)
            return lambda: backward(gradient, x)

        add(name + "/16m", make_forward)
        add(name + "_grad/16m", make_backward)

    aten = torch.ops.aten
    unary("relu", lambda x, out: torch.clamp_min(x, 0, out=out), lambda g, y: aten.threshold_backward(g, y, 0))
    unary("sigmoid", lambda x, out: torch.sigmoid(x, out=out), aten.sigmoid_backward)
    unary("tanh", lambda x, out: torch.tanh(x, out=out), aten.tanh_backward)
    unary("gelu", lambda x, out: f.gelu(x), aten.gelu_backward)
    unary("exp", lambda x, out: torch.exp(x, out=out), lambda g, y: g * y)
    unary("sqrt", lambda x, out: torch.sqrt(x, out=out), lambda g, y: g / (2 * y))
    unary("square", lambda x, out: torch.square(x, out=out), lambda g, x: g * (2 * x))

    def binary(name, run, *shapes):
        def make():
            inputs = [torch.rand(shape) + 0.1 for shape in shapes]
            out = torch.empty(shapes[0])
            return lambda: run(*inputs, out)

        add(name, make)

    big = (4096, 4096)
    binary("elementwise_add/4096x4096", lambda x, y, out: torch.add(x, y, out=out), big, big)
    binary("elementwise_mul/4096x4096", lambda x, y, out: torch.mul(x, y, out=out), big, big)
    binary("elementwise_div/4096x4096", lambda x, y, out: torch.div(x, y, out=out), big, big)
    binary("elementwise_add/row_4096x4096", lambda x, y, out: torch.add(x, y, out=out), big, (4096,))
    binary("elementwise_mul_grad/4096x4096", lambda x, y, g, out: (g * y, g * x), big, big, big)
    binary("elementwise_add_grad/row_4096x4096", lambda g, out: (out.copy_(g), g.sum(0)), big)
    binary("scale/4096x4096", lambda x, out: torch.add(torch.ones(1), x, alpha=0.5, out=out), big)
    binary("clip/4096x4096", lambda x, out: torch.clamp(x, 0.2, 0.8, out=out), big)
    binary("sum/3_of_4096x4096", lambda x, y, z, out: torch.add(x, y, out=out).add_(z), big, big, big)
    binary("dropout/4096x4096", lambda x, out: torch.native_dropout(x, 0.1, True), big)
    for op, run in (("reduce_sum", torch.sum), ("reduce_mean", torch.mean), ("reduce_max", torch.amax)):
        binary(op + "/rows_4096x4096", lambda x, out, run=run: run(x, 1), big)
        binary(op + "/columns_4096x4096", lambda x, out, run=run: run(x, 0), big)
        binary(op + "/all_4096x4096", lambda x, out, run=run: run(x, (0, 1)), big)
    binary("squared_l2_norm/4096x4096", lambda x, out: torch.linalg.vector_norm(x), big)
    binary("arg_max/rows_4096x4096", lambda x, out: torch.argmax(x, 1), big)
    binary("cumsum/rows_4096x4096", lambda x, out: torch.cumsum(x, 1, out=out), big)

    rows = (16384, 1024)
    binary("softmax/16384x1024", lambda x, out: torch.softmax(x, 1), rows)
    binary("log_softmax/16384x1024", lambda x, out: torch.log_softmax(x, 1), rows)
    binary("softmax_grad/16384x1024",
           lambda y, g, out: torch._softmax_backward_data(g, y, 1, torch.float32), rows, rows)
    binary("log_softmax_grad/16384x1024",
           lambda y, g, out: torch._log_softmax_backward_data(g, y, 1, torch.float32), rows, rows)

    def cross_entropy():
        x, labels = torch.rand(rows), torch.randint(1024, (16384,))
        # Skiff's op also returns the softmax; PyTorch keeps its logarithm for the backward pass instead.
        return lambda: f.nll_loss(torch.log_softmax(x, 1), labels, reduction="none")

    add("softmax_with_cross_entropy/16384x1024", cross_entropy)
    binary("layer_norm/16384x1024",
           lambda x, w, b, out: torch.native_layer_norm(x, (1024,), w, b, 1e-5), rows, (1024,), (1024,))
    binary("layer_norm_grad/16384x1024",
           lambda x, g, m, r, w, b, out: aten.native_layer_norm_backward(g, x, (1024,), m, r, w, b, [True] * 3),
           rows, rows, (16384, 1), (16384, 1), (1024,), (1024,))
    images, channels = (64, 64, 64, 64), (64,)
    binary("batch_norm/64x64x64x64",
           lambda x, w, b, m, v, out: torch.native_batch_norm(x, w, b, m, v, True, 0.1, 1e-5),
           images, channels, channels, channels, channels)
    binary("batch_norm_grad/64x64x64x64",
           lambda x, g, w, m, v, out: aten.native_batch_norm_backward(g, x, w, m, v, m, v, True, 1e-5, [True] * 3),
           images, images, channels, channels, channels)

    binary("assign/4096x4096", lambda x, out: out.copy_(x), big)

    def permuted(name, shape, axes):
        def make():
            x = torch.rand(shape).permute(axes)
            out = torch.empty(x.shape)
            return lambda: out.copy_(x)

        add("transpose2/" + name, make)

    permuted("4096x4096", big, (1, 0))
    permuted("channels_last_64x64x64x64", images, (0, 2, 3, 1))
    permuted("heads_16x512x32x64", (16, 512, 32, 64), (0, 2, 1, 3))

    def rows_of_table(run):
        def make():
            table, ids, out = torch.rand(65536, 256), torch.randint(65536, (65536,)), torch.empty(65536, 256)
            return lambda: run(table, ids, out)

        return make

    add("gather/rows_65536x256", rows_of_table(lambda t, i, out: torch.index_select(t, 0, i, out=out)))
    add("lookup_table_v2/65536x256", rows_of_table(lambda t, i, out: f.embedding(i, t)))
    binary("concat/2_of_4096x4096_on_axis_1", lambda x, y, out: torch.cat((x, y), 1), big, big)
    binary("slice/half_of_4096x4096", lambda x, out: x[:, :2048].contiguous(), big)
    binary("cast/float32_to_bfloat16_4096x4096", lambda x, out: x.to(torch.bfloat16), big)

    def updated(optimizer, **options):
        def make():
            parameter = torch.rand(1 << 24)
            parameter.grad = torch.rand(1 << 24)
            return optimizer([parameter], lr=1e-3, **options).step

        return make

    add("momentum/16m", updated(torch.optim.SGD, momentum=0.9, fused=True))
    add("adam/16m", updated(torch.optim.Adam, fused=True))
    return table


def milliseconds(run, seconds):
    """Returns the median time of at least five runs that take at least `seconds` together."""
    for _ in range(2):
        run()
    times = []
    while sum(times) < seconds or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0], allow_abbrev=False)
    parser.add_argument("op_bench", help="the binary")
    parser.add_argument("--op", default="", help="one operator; default: all")
    parser.add_argument("--threads", type=int, default=1, help="of both (default 1)")
    parser.add_argument("--seconds", type=float, default=0.3, help="least measured time a case and side (default 0.3)")
    parser.add_argument("--rounds", type=int, default=2, help="in turn, the better of which counts (default 2)")
    options = parser.parse_args()
    torch = torch_side.torch_without_gradients(options.threads)
    slower = []
    print("PyTorch %s, %d threads; milliseconds, the better median of %d rounds" %
          (torch.__version__, options.threads, options.rounds))
    print("%-52s %9s %9s %15s %9s" % ("", "Skiff", "PyTorch", "PyTorch/Skiff", "of triad"))
    for name, make in operations(torch).items():
        op, case = name.split("/")
        if options.op not in ("", op):
            continue
        ours, theirs, shares = [], [], []
        run = make()
        for _ in range(options.rounds):
            output = subprocess.run(
                [options.op_bench, "--memory", "--json", "--op=" + op, "--case=" + case,
                 "--threads=%d" % options.threads, "--seconds=%g" % options.seconds],
                check=True, stdout=subprocess.PIPE, text=True).stdout
            timing = json.loads(output)
            ours.append(timing["median_microseconds"] / 1e3)
            shares.append(timing["share_of_triad"])
            theirs.append(milliseconds(run, options.seconds))
        print("%-52s %9.2f %9.2f %15.2f %8.0f%%" %
              (name, min(ours), min(theirs), min(theirs) / min(ours), 100 * max(shares)), flush=True)
        if min(theirs) < 0.95 * min(ours):
            slower.append(name)
    print("PyTorch is faster: %s" % (", ".join(slower) or "nowhere"))


if __name__ == "__main__":
    main()
