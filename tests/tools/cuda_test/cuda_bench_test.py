"""Tests the benchmarks of a packed folder: tables, files, and what is said of what can't run.

Programs that print canned figures take the place of op_bench, model_bench and PyTorch.
"""
import json
import os
import shutil
import stat
import subprocess
import tempfile
import unittest

from tools import cuda_bench

MEGABYTE = 1 << 20
# What the programs that follow have in common: their flags, and the canned figures. They also write
# down how they were called.
STUB = '''#!/usr/bin/python3
import json, os, sys
FOLDER = os.path.dirname(os.path.abspath(sys.argv[0]))
FLAGS = dict(flag[2:].partition("=")[::2] for flag in sys.argv[1:])
with open(os.path.join(FOLDER, "calls"), "a") as stream:
    print(os.path.basename(sys.argv[0]), *sys.argv[1:], file=stream)
with open(os.path.join(FOLDER, "canned.json")) as stream:
    CANNED = json.load(stream)
'''
MODEL_BENCH = STUB + '''
figures = CANNED["models"][FLAGS["model"]]
if "error" in figures:
    sys.exit(figures["error"])
in_graphs = figures.pop("in_graphs", None)
figures["graphs"] = 0
if "nographs" not in FLAGS and in_graphs is not None:
    if isinstance(in_graphs, str):
        sys.exit(in_graphs)
    figures["step_ms"] = in_graphs
    figures["graphs"] = 2
print("what takes how long")
print(figures.pop("stderr", ""), file=sys.stderr)
with open(FLAGS["json"], "w") as stream:
    json.dump({"model": FLAGS["model"], **figures}, stream)
'''
OP_BENCH = STUB + '''
run = CANNED["memory" if "memory" in FLAGS else "benchmark_only"]
cases = [case for case in run if FLAGS.get("op", "") in ("", case["op"])]
if not cases:
    sys.exit('error: no case of op "%s"' % FLAGS["op"])
for case in cases:
    print("error in a case" if "bytes" not in case else json.dumps(case),
          file=sys.stderr if "bytes" not in case else sys.stdout, flush=True)
sys.exit(any("bytes" not in case for case in cases))
'''
MODEL_IN_TORCH = STUB + '''
figures = CANNED["torch"][FLAGS["model"]]
if isinstance(figures, str):
    sys.exit("Traceback\\n" + figures)
print(json.dumps({"torch": "2.5", "step_ms": figures}))
'''
TORCH = "class cuda:\n    is_available = staticmethod(lambda: %s)\n"
NO_TORCH = "raise ModuleNotFoundError(\"No module named 'torch'\")\n"
NVIDIA_SMI = '#!/bin/bash\n[[ "$1" == --query-gpu=name,driver_version ]] && echo "Some GPU, 1.2"\n'


def figures(**changes):
    """What model_bench writes, as far as it matters."""
    return {"batch_size": 64, "length": 0, "optimizer": "momentum", "steps": 10,
            "inference": False, "pairs": "", "step_ms": 2, "planned_bytes": 10 * MEGABYTE,
            "host_planned_bytes": MEGABYTE // 2, "instructions": 200, "ops_on_host": {},
            "host_ms": 0.5, **changes}


def case(op, name, gigabytes_per_second, size=256 * MEGABYTE, **changes):
    """A line of op_bench, as far as it matters."""
    return {"op": op, "case": name, "candidate": "cuda", "median_microseconds": 100,
            "bytes": size, "gigabytes_per_second": gigabytes_per_second, **changes}


COPY = case("assign", "4096x4096", 2000)


class Packed(unittest.TestCase):
    """A folder like a packed one."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("bench", "python", "bin", "tests"):
            os.mkdir(os.path.join(self.folder, name))
        shutil.copy("tools/cuda_test.sh", self.folder)
        shutil.copy("tools/cuda_bench.py", os.path.join(self.folder, "bench"))
        for path, text in (("bench/model_bench", MODEL_BENCH), ("bench/op_bench", OP_BENCH),
                           ("bench/model_in_torch.py", MODEL_IN_TORCH),
                           ("bin/nvidia-smi", NVIDIA_SMI), ("python/torch.py", TORCH % True)):
            self.write(path, text)

    def write(self, path, text):
        path = os.path.join(self.folder, path)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.chmod(path, stat.S_IRWXU)

    def read(self, path):
        with open(os.path.join(self.folder, path), encoding="utf-8") as stream:
            return stream.read()

    def run_packed(self, *arguments, **canned):
        """(exit status, lines of stdout, lines of stderr) of cuda_test.sh."""
        self.write("bench/canned.json", json.dumps(canned))
        done = subprocess.run([os.path.join(self.folder, "cuda_test.sh"), *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, cwd=self.folder,
                              env={"PATH": self.folder + "/bin:/usr/bin:/bin",
                                   "PYTHONPATH": self.folder + "/python",
                                   "LD_LIBRARY_PATH": "/of/the/user"})
        return done.returncode, done.stdout.splitlines(), done.stderr.splitlines()

    def calls(self, program):
        """The flags of each call of a program."""
        if not os.path.exists(os.path.join(self.folder, "bench/calls")):
            return []
        calls = [line.split() for line in self.read("bench/calls").splitlines()]
        return [call[1:] for call in calls if call[0] == program]


class Models(Packed):
    def test_compares_with_pytorch_and_with_steps_in_graphs(self):
        status, lines, errors = self.run_packed(
            "models", "--model=mlp", "--json=figures.json", "--steps=7",
            models={"mlp": figures(host_ms=0.25, in_graphs=3, ops_on_host={"a": 3, "b": 2})},
            torch={"mlp": 5})
        self.assertEqual((status, errors), (0, []))
        self.assertEqual(lines[0], "GPU: Some GPU, 1.2")
        self.assertEqual(
            [line.split() for line in lines[-2:]],
            ["model batch ms in graphs host ms device MB host MB host ops PyTorch ratio".split(),
             "mlp 64 2.000 3.000 0.250 10.0 0.5 2.5% 5.000 1.67".split()])
        # Columns of numbers end where their heads do.
        self.assertEqual(len(lines[-2]), len(lines[-1]))
        found = json.loads(self.read("figures.json"))
        self.assertEqual(found, [{**figures(host_ms=0.25, ops_on_host={"a": 3, "b": 2}),
                                  "model": "mlp", "graphs": 0, "step_ms_in_graphs": 3, "torch": "2.5",
                                  "torch_step_ms": 5, "torch_over_skiff": 5 / 3,
                                  "gpu": "Some GPU, 1.2"}])
        first, second = self.calls("model_bench")
        for call, own in ((first, ["--nographs"]), (second, [])):
            self.assertEqual(call[:-1],
                             ["--model=mlp", "--place=cuda", "--nosplit", *own, "--steps=7"])
        self.assertEqual(self.calls("model_in_torch.py"),
                         [["--device=cuda", "--model=mlp", "--batch_size=64", "--length=0",
                           "--optimizer=momentum", "--steps=10"]])

    def test_a_model_whose_rows_vary_has_no_graphs(self):
        status, lines, _ = self.run_packed("models", "--model=mlp", models={"mlp": figures()},
                                           torch={"mlp": 5})
        self.assertEqual(status, 0)
        self.assertEqual(lines[-1].split(), "mlp 64 2.000 - 0.500 10.0 0.5 0.0% 5.000 2.50".split())

    def test_a_model_that_fails_does_not_end_the_others(self):
        status, lines, _ = self.run_packed(
            "models", "--model=mlp,lenet,vgg16", "--json=figures.json",
            models={"mlp": {"error": "some line\nerror: no memory\n"},
                    "lenet": figures(in_graphs="error: a graph"),
                    "vgg16": figures()}, torch={"vgg16": 1})
        self.assertEqual(status, 1)
        self.assertEqual(lines[-3].split(maxsplit=1), ["mlp", "failed: no memory"])
        self.assertEqual(lines[-2].split(maxsplit=1), ["lenet", "failed: in graphs: a graph"])
        self.assertEqual(lines[-1].split()[0:3], ["vgg16", "64", "2.000"])
        found = json.loads(self.read("figures.json"))
        self.assertEqual(found[0], {"model": "mlp", "error": "no memory", "gpu": "Some GPU, 1.2"})
        self.assertEqual([model["model"] for model in found], ["mlp", "lenet", "vgg16"])

    def test_a_model_that_crashes_has_its_signal_as_reason(self):
        self.write("bench/model_bench", "#!/bin/bash\nkill -SEGV $$\n")
        status, lines, _ = self.run_packed("models", "--model=mlp")
        self.assertEqual(status, 1)
        self.assertEqual(lines[-1].split(maxsplit=1), ["mlp", "failed: ended by SIGSEGV"])

    def test_a_model_without_figures_does_not_end_the_others(self):
        bench = MODEL_BENCH.replace("with open(FLAGS", """if FLAGS["model"] == "lenet":
    open(FLAGS["json"], "w").write("{\\"step_ms\\": ")
    sys.exit()
with open(FLAGS""")
        self.write("bench/model_bench", bench)
        status, lines, _ = self.run_packed(
            "models", "--model=lenet,mlp", "--json=figures.json",
            models={"lenet": figures(), "mlp": figures()}, torch={"mlp": 5})
        self.assertEqual(status, 1)
        reason = "model_bench wrote no figures, but '{\"step_ms\":'"
        self.assertEqual(lines[-2].split(maxsplit=1), ["lenet", "failed: " + reason])
        self.assertEqual(lines[-1].split()[0], "mlp")
        self.assertEqual(json.loads(self.read("figures.json"))[0]["error"], reason)

    def test_pytorch_may_print_no_figures(self):
        for printed, reason in (("print('a word')", "'a word'"), ("", "''"), ("print(7)", "'7'")):
            with self.subTest(reason):
                self.write("bench/model_in_torch.py", printed)
                status, lines, _ = self.run_packed("models", "--model=mlp",
                                                   models={"mlp": figures()})
                self.assertEqual(status, 0)
                self.assertEqual(lines[-1],
                                 "  in PyTorch: model_in_torch.py wrote no figures, but " + reason)

    def test_says_why_pytorch_was_not_timed(self):
        for torch, reason in ((NO_TORCH, "ModuleNotFoundError: No module named 'torch'"),
                              (TORCH % False, "it finds no GPU")):
            with self.subTest(reason):
                self.write("python/torch.py", torch)
                status, lines, _ = self.run_packed("models", "--model=mlp,lenet",
                                                   models={"mlp": figures(), "lenet": figures()})
                self.assertEqual(status, 0)
                self.assertEqual(lines[-3].split()[-2:], ["-", "-"])
                self.assertEqual(lines[-1], "PyTorch wasn't timed: " + reason)
                self.assertEqual(self.calls("model_in_torch.py"), [])

    def test_says_why_pytorch_has_not_run_a_model(self):
        status, lines, _ = self.run_packed(
            "models", "--model=mlp,lenet",
            models={"mlp": figures(), "lenet": figures(inference=True)},
            torch={"mlp": "OutOfMemoryError: too large"})
        self.assertEqual(status, 0)
        self.assertEqual(lines[-3], "  in PyTorch: OutOfMemoryError: too large")
        self.assertEqual(lines[-1], "  in PyTorch: it only trains, on sentences of one length")

    def test_says_which_models_pytorch_lacks(self):
        status, lines, _ = self.run_packed("models", "--model=text_gru", "--json=figures.json",
                                           models={"text_gru": figures()})
        self.assertEqual(status, 0)
        self.assertEqual(lines[-2].split(), "text_gru 64 2.000 - 0.500 10.0 0.5 0.0% - -".split())
        reason = "model_in_torch.py lacks this model"
        self.assertEqual(lines[-1], "  in PyTorch: " + reason)
        self.assertEqual(json.loads(self.read("figures.json"))[0]["torch_error"], reason)
        self.assertEqual(self.calls("model_in_torch.py"), [])

    def test_trains_all_models_as_they_are_trained_usually(self):
        self.run_packed("models", models={})
        calls = {call[0][len("--model="):]: call[3:-1] for call in self.calls("model_bench")}
        self.assertEqual(list(calls), [
            "mlp", "lenet", "resnet20", "resnet50", "vgg16", "ernie_mini", "text_cnn", "text_gru",
            "text_lstm", "char_lstm", "char_gru", "lstm_512", "gru_512", "seq2seq_gru_bahdanau",
            "seq2seq_lstm_luong"])
        self.assertEqual(calls["ernie_mini"], ["--optimizer=adam", "--nographs"])
        self.assertEqual(calls["seq2seq_lstm_luong"], ["--optimizer=plain_adam", "--nographs"])
        self.assertEqual(calls["text_cnn"], ["--optimizer=plain_adam", "--nographs"])
        self.assertEqual(calls["mlp"], ["--nographs"])

    def test_prints_the_split(self):
        canned = {"models": {"mlp": figures(in_graphs=3)}, "torch": {"mlp": 5}}
        _, lines, _ = self.run_packed("models", "--model=mlp", "--split", **canned)
        self.assertEqual(lines.count("what takes how long"), 1)
        _, lines, _ = self.run_packed("models", "--model=mlp", **canned)
        self.assertEqual(lines.count("what takes how long"), 0)

    def test_finds_the_packed_libraries_first(self):
        self.write("bench/model_bench", '#!/bin/bash\necho "error: $LD_LIBRARY_PATH" >&2\nexit 1\n')
        _, lines, _ = self.run_packed("models", "--model=mlp")
        self.assertIn("failed: %s/lib:/of/the/user" % os.path.realpath(self.folder), lines[-1])

    def test_prints_a_warning_once(self):
        warning = "warning: products of matrices run on a slower kernel"
        _, _, errors = self.run_packed("models", "--model=mlp,lenet", models={
            "mlp": figures(stderr=warning), "lenet": figures(stderr=warning)}, torch={})
        self.assertEqual(errors, [warning])


class Operators(Packed):
    RUN = [case("conv2d", "big", 90, gigaflops_per_second=1500), case("adam", "words", 1000),
           case("relu", "small", 10, size=100)]
    MEMORY = [COPY, case("softmax", "rows", 1500, size=100)]

    def test_shows_what_memory_limits_beside_a_copy(self):
        status, lines, errors = self.run_packed("bench", "--json=figures.json", "--seconds=0.1",
                                                benchmark_only=self.RUN, memory=self.MEMORY)
        self.assertEqual((status, errors), (0, []))
        above, below = lines[1:lines.index("")], lines[lines.index("") + 1:]
        self.assertEqual([line.split() for line in above], [
            "conv2d/big cuda 100.00 us 90.00 GB/s 1500.00 GFLOP/s".split(),
            "adam/words cuda 100.00 us 1000.00 GB/s".split(),
            "relu/small cuda 100.00 us 10.00 GB/s".split()])
        self.assertIn("2000.00 GB/s", below[0])
        self.assertEqual([line.split() for line in below[1:]], [
            "adam/words 100.00 us 1000.00 GB/s 50%".split(),
            "assign/4096x4096 100.00 us 2000.00 GB/s 100%".split(),
            "softmax/rows 100.00 us 1500.00 GB/s 75%".split()])
        found = json.loads(self.read("figures.json"))
        self.assertEqual([(row["op"], row.get("share_of_copy")) for row in found],
                         [("conv2d", None), ("adam", 0.5), ("relu", None), ("assign", 1),
                          ("softmax", 0.75)])
        self.assertEqual({row["gpu"] for row in found}, {"Some GPU, 1.2"})
        self.assertEqual(self.calls("op_bench"), [
            ["--device=cuda", "--json", "--memory", "--op=assign"],
            ["--device=cuda", "--json", "--benchmark_only", "--seconds=0.1"],
            ["--device=cuda", "--json", "--memory", "--seconds=0.1"]])

    def test_takes_an_op_of_either_list(self):
        canned = {"benchmark_only": self.RUN, "memory": self.MEMORY}
        for op in ("conv2d", "softmax"):
            status, lines, errors = self.run_packed("bench", "--op=" + op, **canned)
            self.assertEqual((status, errors), (0, []), op)
            self.assertEqual(sum(line.startswith(op) for line in lines), 1)
        status, _, errors = self.run_packed("bench", "--op=hope", **canned)
        self.assertEqual(status, 1)
        self.assertEqual(errors[0], 'failed: no case of op "hope"')

    def test_a_case_that_fails_does_not_end_the_others(self):
        for canned in ({"benchmark_only": [{"op": "relu"}, *self.RUN], "memory": self.MEMORY},
                       {"benchmark_only": self.RUN, "memory": [COPY, {"op": "relu"}]}):
            status, lines, errors = self.run_packed("bench", **canned)
            self.assertEqual((status, errors), (1, ["error in a case"]))
            self.assertEqual(sum(line.startswith("adam/words") for line in lines), 2)

    def test_a_line_that_is_no_figures_does_not_end_the_others(self):
        self.write("bench/op_bench",
                   OP_BENCH.replace("\nfor case", "\nprint('a word', flush=True)\nfor case"))
        status, lines, errors = self.run_packed("bench", benchmark_only=self.RUN,
                                                memory=self.MEMORY)
        self.assertEqual(status, 1)
        self.assertEqual(set(errors), {"op_bench wrote no figures, but 'a word'"})
        self.assertEqual(sum(line.startswith("adam/words") for line in lines), 2)

    def test_fails_where_there_are_no_figures(self):
        self.write("bench/op_bench", "#!/bin/bash\necho a word\n")
        status, _, errors = self.run_packed("bench")
        self.assertEqual((status, errors),
                         (1, ["failed: op_bench wrote no figures, but 'a word'"]))

    def test_fails_where_nothing_can_be_copied(self):
        self.write("bench/op_bench", "#!/bin/bash\necho 'error: no device' >&2\nexit 1\n")
        status, _, errors = self.run_packed("bench")
        self.assertEqual((status, errors), (1, ["failed: no device"]))


class All(Packed):
    TEST = '''#!/bin/bash
cat <<'END'
Running main()
[ RUN      ] a.runs
[       OK ] a.runs (1 ms)
'''

    def run_all(self, test, *arguments, **canned):
        """(exit status, lines about what could not run) with a test that prints so after others."""
        self.write("tests/test", self.TEST + test + "END\n")
        status, lines, _ = self.run_packed("all", *arguments, **canned)
        return status, lines[lines.index("== what could not run, and why") + 1:]

    def canned(self, **changes):
        names = ("mlp", "lenet", "resnet20", "resnet50", "vgg16", "ernie_mini", "text_cnn",
                 "text_gru", "text_lstm", "char_lstm", "char_gru", "lstm_512", "gru_512",
                 "seq2seq_gru_bahdanau", "seq2seq_lstm_luong")
        models = {name: figures(in_graphs=3) for name in names}
        return {"models": {**models, **changes}, "torch": {name: 5 for name in names},
                "benchmark_only": [case("adam", "words", 1000)], "memory": [COPY]}

    def test_lists_what_could_not_run_with_the_reason(self):
        self.write("python/torch.py", NO_TORCH)
        skipped = "".join("[ RUN      ] a.%s\nsome.cc:1: Skipped\nno second GPU\n\n"
                          "[  SKIPPED ] a.%s (0 ms)\n" % (name, name) for name in "bcde")
        skipped += "[ RUN      ] a.f/1\n[  SKIPPED ] a.f/1, where GetParam() = 1 (0 ms)\n"
        canned = self.canned(lenet={"error": "error: no memory"},
                             mlp=figures(stderr="warning: no libcublasLt.so"))
        canned["memory"].append({"op": "relu"})
        status, lines = self.run_all(skipped, "--json=out", **canned)
        self.assertEqual(status, 1)
        self.assertEqual(sorted(lines), [
            "PyTorch wasn't timed: ModuleNotFoundError: No module named 'torch'",
            "error in a case",
            "lenet: no memory",
            "no libcublasLt.so",
            "tests under compute-sanitizer: it is not on PATH",
            "tests, 1 skipped: no reason given (a.f/1)",
            "tests, 4 skipped: no second GPU (a.b, a.c, a.d, …)"])
        self.assertEqual(len(json.loads(self.read("out/models.json"))), 15)
        self.assertEqual(len(json.loads(self.read("out/models_in_loops.json"))), 2)
        self.assertIn("--decoder=dynamic_rnn", self.calls("model_bench")[-1])
        self.assertEqual(len(json.loads(self.read("out/ops.json"))), 2)

    def test_succeeds_if_nothing_is_missing(self):
        self.write("bin/compute-sanitizer", '#!/bin/bash\n"$5"\n')
        status, lines = self.run_all("", **self.canned())
        self.assertEqual(status, 0)
        self.assertEqual(lines, ["nothing"])

    def test_benchmarks_run_after_a_failed_test(self):
        status, lines = self.run_all("[ RUN      ] a.b\n[  FAILED  ] a.b (0 ms)\n", **self.canned())
        self.assertEqual(status, 1)
        self.assertEqual(lines, ["tests under compute-sanitizer: it is not on PATH"])
        self.assertTrue(self.calls("model_bench"))

    def test_fails_with_any_benchmark(self):
        self.assertEqual(self.run_all("", **self.canned())[0], 0)
        self.assertEqual(self.run_all("", **self.canned(mlp={"error": "error: no memory"}))[0], 1)
        canned = self.canned()
        canned["memory"].append({"op": "relu"})
        self.assertEqual(self.run_all("", **canned)[0], 1)

    def test_runs_the_tests_once_more_under_a_sanitizer(self):
        self.write("bin/compute-sanitizer", '#!/bin/bash\necho "$2" >>tools\n"$5"\n')
        status, lines = self.run_all("[ RUN      ] a.b\n[  SKIPPED ] a.b (0 ms)\n",
                                     "--sanitizer=racecheck", **self.canned())
        self.assertEqual((status, self.read("tools")), (1, "racecheck\n"))
        # Said once, though it was skipped twice.
        self.assertEqual(lines, ["tests, 1 skipped: no reason given (a.b)"])
        self.assertEqual(self.run_packed("all", "--sanitizer=hope")[0], 2)


    def test_tests_find_the_packed_libraries_first(self):
        self.write("tests/test", self.TEST +
                   'END\n[[ "$LD_LIBRARY_PATH" == "%s/lib:/of/the/user" ]]\n'
                   % os.path.realpath(self.folder))
        self.assertEqual(self.run_packed("run")[0], 0)


class Command(Packed):
    def test_help(self):
        status, lines, errors = self.run_packed("--help")
        self.assertEqual((status, errors), (0, []))
        text = "\n".join(lines)
        for part in ("pack FOLDER", "run [--sanitizer=TOOL] [--jobs=N] [--logs=FOLDER]", "bench [--json=FILE] [FLAG…]",
                     "models [--json=FILE] [--model=NAME,NAME] [FLAG…]",
                     "all [--sanitizer=TOOL] [--jobs=N] [--json=FOLDER]"):
            self.assertIn("cuda_test.sh " + part, text)
        # Wrong arguments get the same.
        self.assertEqual(self.run_packed("hope"), (2, [], lines))
        for name, program in (("bench", "op_bench"), ("models", "model_bench")):
            status, lines, errors = self.run_packed(name, "--help")
            self.assertEqual((status, errors), (0, []))
            self.assertTrue(lines[0].startswith("usage: cuda_test.sh %s [-h] [--json FILE]" % name))
            self.assertEqual(lines[-1], "All other flags are passed to %s." % program)

    def test_packs_what_the_benchmarks_need(self):
        built = os.path.join(self.folder, "built")
        for path, text in (("tests/a/b_test", "#!/bin/bash\n"),
                           ("tests/a/memory_test", "#!/bin/bash\n"),
                           ("tools/op_bench/op_bench", OP_BENCH),
                           ("tools/model_bench/model_bench", MODEL_BENCH)):
            os.makedirs(os.path.dirname(os.path.join(built, path)), exist_ok=True)
            self.write(os.path.join("built", path), text)
        self.write("bin/bazel", '#!/bin/bash\ncase "$*" in\n  query*exclusive*) echo //tests/a:memory_test ;;\n'
                                '  query*) echo //tests/a:b_test //tests/a:memory_test ;;\n'
                                '  info*) echo %s ;;\nesac\n' % built)
        packed = os.path.join(self.folder, "packed")
        subprocess.run(["tools/cuda_test.sh", "pack", packed], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env={"PATH": self.folder + "/bin:/usr/bin:/bin"})
        self.assertEqual(os.listdir(os.path.join(packed, "tests")), ["tests.a.b_test"])
        self.assertEqual(os.listdir(os.path.join(packed, "tests_alone")), ["tests.a.memory_test"])
        # PyTorch's side imports what it needs before it imports PyTorch.
        done = subprocess.run(["/usr/bin/python3", packed + "/bench/model_in_torch.py", "--help"],
                              stdout=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0)
        self.folder = packed
        status, lines, _ = self.run_packed("models", "--model=mlp", models={"mlp": figures()})
        self.assertEqual((status, lines[-2].split()[:3]), (0, ["mlp", "64", "2.000"]))

    def test_pytorch_has_every_model_but_those_that_it_lacks(self):
        done = subprocess.run(["/usr/bin/python3", "tools/model_bench/model_in_torch.py", "--help"],
                              stdout=subprocess.PIPE, text=True, check=True)
        self.run_packed("models", models={})
        for call in self.calls("model_bench"):
            model = call[0][len("--model="):]
            check = self.assertNotRegex if model in cuda_bench.NOT_IN_TORCH else self.assertRegex
            check(done.stdout, r"[{,]%s[,}]" % model)
        self.assertLess(set(cuda_bench.NOT_IN_TORCH), set(cuda_bench.MODELS))


if __name__ == "__main__":
    unittest.main()
