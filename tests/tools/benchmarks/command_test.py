"""Tests what the benchmarks do with their arguments, and where they write."""
import json
import math
import os
import re
import subprocess
import tempfile
import unittest


def run(name, *arguments, **environment):
    """The program `name` of tools/, or that of a path."""
    path = name if "/" in name else f"tools/{name}/{name}"
    command = [os.path.abspath(path), *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                          env={**os.environ, **environment})


class Command(unittest.TestCase):
    def test_refuses_what_is_no_flag(self):
        for name in ("allocator_bench", "dispatch_bench", "model_bench", "op_bench", "optimizer_bench"):
            with self.subTest(name):
                result = run(name, "relu")
                self.assertEqual(result.returncode, 2)
                self.assertEqual(result.stderr, 'error: "relu" is no flag; --help lists them\n')
                self.assertEqual(result.stdout, "")

    def test_chains_of_ops_add_feeds_up(self):
        result = run("dispatch_bench", "--ops=10", "--steps=2", "--feeds=10")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\A10 ops: median ")
        for feeds in (0, 11):
            result = run("dispatch_bench", "--ops=10", f"--feeds={feeds}")
            self.assertEqual(result.stderr, f"error: --feeds={feeds}: expected 1 to --ops=10\n")

    def test_writes_figures_where_the_user_of_bazel_run_is(self):
        with tempfile.TemporaryDirectory() as folder:
            result = run("model_bench", "--model=mlp", "--batch_size=2", "--steps=1", "--threads=1", "--nosplit",
                         "--seed=3", "--kernels=mul=plain", "--json=figures.json",
                         BUILD_WORKING_DIRECTORY=folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(os.path.join(folder, "figures.json"), encoding="utf-8") as stream:
                figures = json.load(stream)
        self.assertEqual({key: figures[key] for key in ("model", "optimizer", "seed", "kernels", "inference", "passes")},
                         {"model": "mlp", "optimizer": "momentum", "seed": 3, "kernels": "mul=plain", "inference": False,
                          "passes": ""})
        held = figures["planned_bytes"] + figures["derived_bytes"] + figures["persistable_bytes"]
        self.assertGreaterEqual(figures["reserved_bytes"], held)
        # Beside it, two images with their labels, and counters.
        self.assertLess(figures["reserved_bytes"], held + 10000)
        self.assertGreaterEqual(figures["peak_reserved_bytes"], figures["reserved_bytes"])

    def test_times_models_in_half(self):
        for arguments in ((), ("--inference",)):
            with self.subTest(arguments), tempfile.TemporaryDirectory() as folder:
                result = run("model_bench", "--model=mlp", "--batch_size=2", "--steps=1", "--threads=1", "--nosplit",
                             "--precision=bfloat16", "--json=figures.json", *arguments, BUILD_WORKING_DIRECTORY=folder)
                self.assertEqual(result.returncode, 0, result.stderr)
                with open(os.path.join(folder, "figures.json"), encoding="utf-8") as stream:
                    self.assertEqual(json.load(stream)["precision"], "bfloat16")
        result = run("model_bench", "--model=mlp", "--precision=half")
        self.assertIn('precision "half": expected float32, bfloat16 or float16', result.stderr)

    def test_splits_a_step_by_op_with_shares_of_the_peak(self):
        result = run("model_bench", "--model=mlp", "--batch_size=2", "--steps=1", "--threads=1")
        self.assertEqual(result.returncode, 0, result.stderr)
        header, *rows = result.stdout[result.stdout.index("        ms "):].splitlines()
        self.assertEqual(header.split(), ["ms", "share", "of", "peak", "count", "op", "and", "kernel"])
        # A product has FLOP, so two shares; an update has none.
        self.assertTrue(any(re.match(r" +[\d.]+ +[\d.]+% +[\d.]+% +\d+  mul ", row) for row in rows), rows)
        self.assertTrue(any(re.match(r" +[\d.]+ +[\d.]+% +\d+  .*momentum", row) for row in rows), rows)

    def test_takes_batches_of_pairs_in_turn(self):
        def figures_of(lines, *arguments):
            with tempfile.TemporaryDirectory() as folder:
                with open(os.path.join(folder, "pairs.txt"), "w", encoding="utf-8") as stream:
                    stream.write(lines)
                result = run("model_bench", "--model=seq2seq_gru_bahdanau", "--batch_size=2", "--steps=1", "--threads=1",
                             "--nosplit", "--pairs=pairs.txt", "--json=figures.json", *arguments,
                             BUILD_WORKING_DIRECTORY=folder)
                if result.returncode != 0:
                    return result.stderr
                with open(os.path.join(folder, "figures.json"), encoding="utf-8") as stream:
                    return json.load(stream)

        long, short = "40 30\n38 31\n", "2 3\n1 2\n"
        # Some editors begin a file with a byte order mark.
        both, alone = figures_of("\ufeff" + short + long + "5 5\n"), figures_of(long)
        self.assertEqual((both["batches"], alone["batches"]), (2, 1))
        # The memory is that of the largest batch, wherever it comes.
        self.assertEqual(both["planned_bytes"], alone["planned_bytes"])
        for lines, expected in (("1 2 3\n", 'pairs.txt:1: found "1 2 3", expected two numbers of tokens'),
                                (long + "7\n", 'pairs.txt:3: found "7", expected two numbers of tokens'),
                                ("", "pairs.txt: found no line, expected a pair on each"),
                                ("4 5\n", "1 pairs of sentences, expected at least a batch of 2"),
                                ("4 0\n1 1\n", "a pair of 4 and 0 tokens, expected at least 1 on each side")):
            with self.subTest(lines):
                self.assertIn(expected, figures_of(lines))
        self.assertIn("expected one of the two", figures_of(long, "--length=3"))
        self.assertIn("pairs of sentences with mlp", figures_of(long, "--model=mlp"))

    def test_refuses_sizes_out_of_range(self):
        for flag in ("--batch_size=0", "--steps=0", "--threads=-1"):
            with self.subTest(flag):
                result = run("model_bench", "--model=mlp", flag)
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, flag + r"\b.*: expected at least 1 sample, 1 step and 0 threads ")

    def test_attention_takes_memory_by_length_not_by_its_square(self):
        def planned_bytes(length, passes):
            with tempfile.TemporaryDirectory() as folder:
                result = run("model_bench", "--model=ernie_tiny", f"--length={length}", "--batch_size=1", "--steps=1",
                             "--nosplit", f"--passes={passes}", "--recompute=nothing", "--json=figures.json",
                             BUILD_WORKING_DIRECTORY=folder)
                self.assertEqual(result.returncode, 0, result.stderr)
                with open(os.path.join(folder, "figures.json"), encoding="utf-8") as stream:
                    return json.load(stream)["planned_bytes"]

        def growth(passes):
            """How much more 1,024 further tokens take than 512 further ones."""
            short, middle, long = (planned_bytes(length, passes) for length in (512, 1024, 2048))
            return (long - middle) / (middle - short)

        self.assertAlmostEqual(growth("+fuse_attention"), 2, delta=0.05)
        self.assertGreater(growth("-fuse_attention"), 3)

    def test_takes_a_length_of_sequences_alone(self):
        result = run("model_bench", "--model=mlp", "--length=64")
        self.assertEqual(result.stderr, "error: length = 64: mlp reads images, expected no length of sequences\n")
        result = run("model_bench", "--model=ernie_tiny", "--length=27")
        self.assertEqual(result.stderr,
                         "error: length = 27: expected room for 8 tokens of padding and 20 masked ones\n")

    def test_times_a_saved_model(self):
        with tempfile.TemporaryDirectory() as folder:
            result = run("models/mlp/train", "--output_dir=run", "--epochs=1", "--limit_samples=64", "--threads=1",
                         BUILD_WORKING_DIRECTORY=folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            result = run("model_bench", "--saved_model=run/model", "--batch_size=2", "--steps=1", "--threads=1",
                         "--clients=2", BUILD_WORKING_DIRECTORY=folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"\Arun/model, batch 2, 1 threads: ")
            self.assertRegex(result.stdout, r"\n2 clients at once: [\d.]+ ms a step .* samples/s together; ")
            self.assertIn("softmax", result.stdout)
            self.assertNotIn("_grad", result.stdout)
            # Probabilities, and evaluation changes nothing.
            value, again = map(float, re.search(r"first value (\S+) -> (\S+);", result.stdout).groups())
            self.assertEqual(value, again)
            self.assertTrue(0 < value < 1, value)

            for other in ("--model=mlp", "--inference"):
                result = run("model_bench", "--saved_model=run/model", other, BUILD_WORKING_DIRECTORY=folder)
                self.assertEqual(result.returncode, 1)
                self.assertIn("expected it alone", result.stderr)

            result = run("model_bench", "--saved_model=run", BUILD_WORKING_DIRECTORY=folder)
            self.assertEqual(result.returncode, 1)
            self.assertIn("__model__", result.stderr)

    def test_dumps_passes_and_limits_them(self):
        with tempfile.TemporaryDirectory() as folder:
            result = run("model_bench", "--model=mlp", "--batch_size=2", "--steps=1", "--threads=1", "--nosplit",
                         "--pass_limit=1", "--dump_passes=passes", BUILD_WORKING_DIRECTORY=folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            dumped = os.path.join(folder, "passes")
            self.assertEqual(sorted(os.listdir(dumped)), ["01_early_update.txt", "02_dead_code.txt"])
            with open(os.path.join(dumped, "01_early_update.txt"), encoding="utf-8") as stream:
                self.assertRegex(stream.read(), r"\A# early_update: .*\nprogram ")

    def test_times_gradients(self):
        result = run("op_bench", "--gradient", "--op=conv2d", "--case=pointwise", "--json", "--seconds=0", "--threads=1",
                     "--candidate=plain")
        self.assertEqual(result.returncode, 0, result.stderr)
        figures = json.loads(result.stdout)
        self.assertEqual(figures["op"], "conv2d_grad")
        self.assertGreater(figures["gigaflops_per_second"], 0)
        result = run("op_bench", "--gradient", "--op=isfinite")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr,
                         'error: no case of op "isfinite", name "" and dtype float32 that has a gradient\n')

    def test_times_optimizers_beside_a_stream(self):
        with tempfile.TemporaryDirectory() as folder:
            result = run("optimizer_bench", "--optimizer=adam,lamb", "--tensors=2,30", "--elements=10,100",
                         "--most_elements=300", "--clip=global_norm", "--decay=l2", "--average=ema", "--threads=1",
                         "--seconds=0", "--json=figures.json", BUILD_WORKING_DIRECTORY=folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            # No progress but on a terminal.
            self.assertEqual(result.stderr, "")
            with open(os.path.join(folder, "figures.json"), encoding="utf-8") as stream:
                figures = json.load(stream)
        self.assertIn(", 1 threads, float32, clip global_norm, decay l2, average ema\n", result.stdout)
        self.assertEqual({key: figures[key] for key in ("place", "threads", "dtype", "clip", "decay", "average")},
                         {"place": "cpu", "threads": 1, "dtype": "float32", "clip": "global_norm", "decay": "l2",
                          "average": "ema"})
        self.assertTrue(figures["cpu"])
        points = [(point["optimizer"], point["tensors"], point["elements"]) for point in figures["points"]]
        self.assertEqual(points, [(optimizer, *sizes) for optimizer in ("adam", "lamb")
                                  for sizes in ((2, 10), (2, 100), (30, 10))])
        for point in figures["points"]:
            per_element = {"adam": 40, "lamb": 52}[point["optimizer"]]
            self.assertEqual(point["bytes"], per_element * point["tensors"] * point["elements"])
            self.assertGreater(point["stream_gigabytes_per_second"], 0)
            self.assertEqual(set(point["forms"]), {"loop", "merged", "flat"})
            for form in point["forms"].values():
                for key in ("step_microseconds", "fastest_microseconds", "gigabytes_per_second", "stream_share",
                            "launches", "loop_over_it", "compile_seconds"):
                    self.assertGreater(form[key], 0, key)
            launches = {name: form["launches"] for name, form in point["forms"].items()}
            self.assertLess(launches["flat"], launches["merged"])
            self.assertLess(launches["merged"], launches["loop"])
        # Clipping, decay and averages go into the update: as many launches for 30 tensors as for 2.
        self.assertEqual(len({point["forms"]["flat"]["launches"] for point in figures["points"]}), 1)

    def test_times_the_forms_of_updates_that_are_asked_for(self):
        result = run("optimizer_bench", "--tensors=1", "--elements=10", "--forms=flat", "--seconds=0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"adam +1 +10 stream .*\n +flat .*\n\Z")

    def test_refuses_optimizers_and_sizes_that_there_are_not(self):
        for flags, message in (
                (["--optimizer=hope"], r'--optimizer=hope: found "hope", expected some of sgd, momentum, .*, lamb'),
                (["--optimizer=adam,adam"], '--optimizer=adam,adam: "adam" is listed twice'),
                (["--forms=flat,round"], '--forms=flat,round: found "round", expected some of loop, merged, flat'),
                (["--forms="], "--forms=: expected some of loop, merged, flat"),
                (["--tensors=1,many"], '--tensors=1,many: found "many", expected positive numbers'),
                (["--elements=0"], '--elements=0: found "0", expected positive numbers'),
                (["--tensors=11", "--elements=10", "--most_elements=100"],
                 "--tensors=11 --elements=10 --most_elements=100: expected a pair with at most that many elements in all"),
                (["--clip=value"], "--clip=value: expected none or global_norm"),
                (["--decay=l1"], "--decay=l1: expected none or l2"),
                (["--threads=-1"], "--threads=-1: expected a number of at least 0"),
                (["--seconds=-1"], "--seconds=-1: expected a number of at least 0"),
                (["--place=moon"], ".*moon.*")):
            with self.subTest(flags):
                result = run("optimizer_bench", *flags)
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, r"\Aerror: " + message + r"\n\Z")
                self.assertEqual(result.stdout, "")

    def test_runs_every_model(self):
        result = run("model_bench", "--model=none")
        self.assertEqual(result.returncode, 1)
        start = "error: model \"none\": expected one of "
        self.assertTrue(result.stderr.startswith(start), result.stderr)
        names = result.stderr[len(start):].split(", ")
        for name in ("mlp", "lenet", "resnet20", "vgg11"):
            self.assertIn(name, names)
        result = run("model_bench", "--model=vgg11", "--batch_size=1", "--steps=1", "--nosplit")
        self.assertEqual(result.returncode, 0, result.stderr)
        # 0.306 GFLOP forward; twice that backward, without the gradient of the image.
        self.assertRegex(result.stdout, r"\n0\.9[12] GFLOP a step")

    def test_runs_translation_models_with_either_decoder(self):
        for model in ("seq2seq_gru_bahdanau", "seq2seq_lstm_luong"):
            losses = []
            for decoder in ("attention_decoder", "dynamic_rnn"):
                with self.subTest(model, decoder=decoder):
                    result = run("model_bench", "--model=" + model, "--decoder=" + decoder, "--optimizer=plain_adam",
                                 "--batch_size=2", "--length=3", "--steps=1", "--threads=1")
                    self.assertEqual(result.returncode, 0, result.stderr)
                    losses.append([float(loss) for loss in
                                   re.search(r"; loss (\S+) -> (\S+); weights", result.stdout).groups()])
                    # The ops of a loop are there, too.
                    # The GRU has a product without a bias, too.
                    op = "mul" if model == "seq2seq_gru_bahdanau" else "linear"
                    has_loop = f" while > {op} plain\n" in result.stdout
                    self.assertEqual(has_loop, decoder == "dynamic_rnn")
                    self.assertEqual(" attention_decoder plain\n" in result.stdout, decoder == "attention_decoder")
            # A mean over vocabularies of 8,000; the initial values differ, since those of an op depend on its place.
            for first, last in losses:
                self.assertAlmostEqual(first, math.log(8000), delta=0.1)
                self.assertLess(last, first)
        result = run("model_bench", "--model=seq2seq_gru_bahdanau", "--decoder=rnn")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, 'error: decoder = "rnn", expected attention_decoder or dynamic_rnn\n')

    def test_forces_kernels(self):
        def model_bench(kernels):
            return run("model_bench", "--model=lenet", "--batch_size=2", "--steps=1", "--threads=1", "--kernels=" + kernels)

        result = model_bench("conv2d=plain,conv2d_grad=plain")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\bconv2d plain\n")
        self.assertRegex(result.stdout, r"\bconv2d_grad plain\n")
        self.assertNotRegex(result.stdout, r"conv2d\w* onednn")
        result = model_bench("conv2d")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, 'error: --kernels: found "conv2d", expected op=kernel\n')

    def test_tunes_kernels_and_remembers_them(self):
        with tempfile.TemporaryDirectory() as folder:
            def model_bench():
                return run("model_bench", "--model=resnet20", "--batch_size=1", "--steps=1", "--threads=1", "--nosplit",
                           "--tune_kernels=kernels", BUILD_WORKING_DIRECTORY=folder)

            first = model_bench()
            self.assertEqual(first.returncode, 0, first.stderr)
            summary = re.search(r"\n(\d+) kernels tuned, (\d+) of them timed now, \d+ not those of the rule\n", first.stdout)
            self.assertIsNotNone(summary, first.stdout)
            kernels = int(summary[1])
            self.assertGreater(kernels, 0)
            self.assertEqual(summary[1], summary[2])
            self.assertEqual(first.stderr.count("\n"), kernels)
            with open(os.path.join(folder, "kernels"), encoding="utf-8") as stream:
                self.assertTrue(stream.read().startswith("skiff kernel choices, version 1\n"))
            second = model_bench()
            self.assertEqual(second.returncode, 0, second.stderr)
            self.assertIn(f"\n{kernels} kernels tuned, 0 of them timed now", second.stdout)
            self.assertEqual(second.stderr, "")
            with open(os.path.join(folder, "kernels"), "w", encoding="utf-8") as stream:
                stream.write("?")
            third = model_bench()
            self.assertEqual(third.returncode, 0, third.stderr)
            self.assertIn("kernels, line 1: expected another line", third.stderr)
            self.assertIn(f"\n{kernels} kernels tuned, {kernels} of them timed now", third.stdout)


if __name__ == "__main__":
    unittest.main()
