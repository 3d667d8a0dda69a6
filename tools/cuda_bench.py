#!/usr/bin/env python3
"""Times operators and models on a GPU, and prints tables.

The folder that cuda_test.sh packs has the programs that this one calls. Use it by
`FOLDER/cuda_test.sh bench` and `FOLDER/cuda_test.sh models`.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# The flags of model_bench by which a model is trained, where its defaults aren't usual.
MODELS = {"mlp": [], "lenet": [], "resnet20": [], "resnet50": [], "vgg16": [],
          "ernie_mini": ["--optimizer=adam"],
          "text_cnn": ["--optimizer=plain_adam"], "text_gru": ["--optimizer=plain_adam"],
          "text_lstm": ["--optimizer=plain_adam"],
          "char_lstm": [], "char_gru": [], "lstm_512": [], "gru_512": [],
          "seq2seq_gru_bahdanau": ["--optimizer=plain_adam"],
          "seq2seq_lstm_luong": ["--optimizer=plain_adam"]}
# Those that model_in_torch.py lacks, ragged texts.
NOT_IN_TORCH = ["text_cnn", "text_gru", "text_lstm"]
# Ops without FLOP whose arguments have this size are limited by memory: caches don't hold them.
LARGE_BYTES = 128 << 20
COPY = "assign"  # the op whose kernel copies within the device's memory


class Failed(Exception):
    """Says why a program has no figures."""


class Report:
    """The figures of a run, in a file, and what couldn't be run, with the reason."""

    def __init__(self, options):
        self.options = options
        self.figures = []
        self.not_run = []
        self.gpu = gpu()

    def add(self, figures):
        self.figures.append({**figures, "gpu": self.gpu})
        # After each of them, so that a run that is cut short leaves what it has.
        if self.options.json:
            with open(self.options.json, "w", encoding="utf-8") as stream:
                json.dump(self.figures, stream, indent=2)
                stream.write("\n")

    def could_not_run(self, text):
        """Returns False if that has been said before."""
        if text in self.not_run:
            return False
        self.not_run.append(text)
        if self.options.not_run:
            with open(self.options.not_run, "a", encoding="utf-8") as stream:
                stream.write(text + "\n")
        return True

    def add_warnings(self, errors):
        """Takes the warnings out of what a program has printed."""
        for line in errors.splitlines():
            if line.startswith("warning: ") and self.could_not_run(line[len("warning: "):]):
                print(line, file=sys.stderr)


def gpu():
    """Returns the GPU's name and driver; empty if nvidia-smi doesn't tell."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""


def environment():
    """Returns that of Skiff's programs, which find the libraries packed with them first."""
    paths = [os.path.join(os.path.dirname(HERE), "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(path for path in paths if path)}


def reason_of(status, errors):
    """Says in a line why a program has failed."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    said = [line[len("error: "):] for line in lines if line.startswith("error: ")] or lines
    if status < 0:
        return "ended by " + signal.Signals(-status).name
    return said[-1] if said else "exit status %d" % status


def run(command, **options):
    """Returns what a program prints, and its errors. Raises Failed unless it succeeds."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", check=False, **options)
    if done.returncode != 0:
        raise Failed(reason_of(done.returncode, done.stderr))
    return done.stdout, done.stderr


def figures_of(program, text):
    """Returns what a program has written as JSON. Raises Failed if it is something else."""
    try:
        figures = json.loads(text)
    except ValueError:
        figures = None
    if not isinstance(figures, dict):
        raise Failed("%s wrote no figures, but %r" % (program, text.strip()[:80]))
    return figures


# ---- models


def skiff_figures(model, flags, report):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        command = [os.path.join(HERE, "model_bench"), "--model=" + model, "--place=cuda",
                   "--nosplit", *MODELS.get(model, []), *flags, "--json=" + path]
        printed, errors = run(command, env=environment())
        report.add_warnings(errors)
        if "--split" in flags:
            print(printed, end="")
        with open(path, encoding="utf-8", errors="replace") as stream:
            return figures_of("model_bench", stream.read())


def step_ms_in_graphs(model, flags, report):
    """Returns the time of a step in CUDA graphs, None if the model's rows vary."""
    flags = [flag for flag in flags if flag != "--split"]
    try:
        figures = skiff_figures(model, flags, report)
    except Failed as failed:
        raise Failed("in graphs: %s" % failed) from failed
    return figures["step_ms"] if figures["graphs"] > 0 else None


class Torch:
    """Times the same models in PyTorch, if it is there."""

    def __init__(self, report):
        self.report = report
        # Not imported here: its CUDA context would take memory from the other programs.
        check = "import torch\nif not torch.cuda.is_available(): exit('it finds no GPU')"
        try:
            run([sys.executable, "-c", check])
            self.why_missing = ""
        except Failed as failed:
            self.why_missing = "PyTorch wasn't timed: %s" % failed
            report.could_not_run(self.why_missing)

    def figures(self, skiff):
        """Returns what is added to the figures of a model; empty if PyTorch can't be timed."""
        if self.why_missing:
            return {}
        # Said with the model alone: nothing is missing on this machine.
        if skiff["model"] in NOT_IN_TORCH:
            return {"torch_error": "model_in_torch.py lacks this model"}
        try:
            if skiff["inference"] or skiff["pairs"]:
                raise Failed("it only trains, on sentences of one length")
            command = [sys.executable, os.path.join(HERE, "model_in_torch.py"), "--device=cuda"]
            for flag in ("model", "batch_size", "length", "optimizer", "steps"):
                command.append("--%s=%s" % (flag, skiff[flag]))
            # What libraries print comes first.
            figures = figures_of("model_in_torch.py", run(command)[0].strip().split("\n")[-1])
        except Failed as failed:
            text = "%s in PyTorch: %s" % (skiff["model"], failed)
            self.report.could_not_run(text)
            return {"torch_error": str(failed)}
        skiff_ms = skiff["step_ms_in_graphs"] or skiff["step_ms"]
        return {"torch": figures["torch"], "torch_step_ms": figures["step_ms"],
                "torch_over_skiff": figures["step_ms"] / skiff_ms}


MODEL_ROW = "%-22s %6s %9s %9s %9s %10s %9s %8s %9s %6s"
MODEL_COLUMNS = ("model", "batch", "ms", "in graphs", "host ms", "device MB", "host MB", "host ops",
                 "PyTorch", "ratio")
MODEL_LEGEND = """\
ms: median of a step, feeds and loss being on the host; in graphs: the same in CUDA graphs; host ms:
until the host has handed a step without them to the device; MB: planned for a step on the device and on the
host; host ops: share of the instructions that run on the host since the device can't; PyTorch: ms,
eager, without TF32; ratio: PyTorch / Skiff, in graphs if it has them"""


def shown(pattern, value):
    return "-" if value is None else pattern % value


def model_row(figures):
    megabyte = 1 << 20
    share = 100 * sum(figures["ops_on_host"].values()) / figures["instructions"]
    return MODEL_ROW % (
        figures["model"], figures["batch_size"], "%.3f" % figures["step_ms"],
        shown("%.3f", figures["step_ms_in_graphs"]), "%.3f" % figures["host_ms"],
        "%.1f" % (figures["planned_bytes"] / megabyte),
        "%.1f" % (figures["host_planned_bytes"] / megabyte), "%.1f%%" % share,
        shown("%.3f", figures.get("torch_step_ms")), shown("%.2f", figures.get("torch_over_skiff")))


def time_models(options, flags, report):
    """Prints a line a model. Returns whether all of them have run."""
    torch, has_failed = Torch(report), False
    print(MODEL_LEGEND)
    print(MODEL_ROW % MODEL_COLUMNS)
    for model in options.model.split(",") if options.model else MODELS:
        try:
            figures = skiff_figures(model, ["--nographs", *flags], report)
            figures["step_ms_in_graphs"] = step_ms_in_graphs(model, flags, report)
            figures.update(torch.figures(figures))
            print(model_row(figures), flush=True)
            if "torch_error" in figures:
                print("  in PyTorch: " + figures["torch_error"], flush=True)
            report.add(figures)
        except Failed as failed:
            has_failed = True
            print("%-22s failed: %s" % (model, failed), flush=True)
            report.could_not_run("%s: %s" % (model, failed))
            report.add({"model": model, "error": str(failed)})
    if torch.why_missing:
        print(torch.why_missing)
    return not has_failed


# ---- operators


def time_cases(flags, report, take):
    """Calls take with the figures of each case as soon as they are there.

    Prints what op_bench says of cases that fail, and what isn't figures. Returns whether there is
    none of that; raises Failed if there is no case with figures.
    """
    command = [os.path.join(HERE, "op_bench"), "--device=cuda", "--json", *flags]
    count = 0
    failures = []
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                              errors="replace", env=environment()) as process:
            for line in process.stdout:
                try:
                    case = figures_of("op_bench", line)
                except Failed as failed:
                    failures.append(str(failed))
                    continue
                take(case)
                count += 1
        errors.seek(0)
        said = errors.read()
    report.add_warnings(said)
    if count == 0:
        raise Failed(failures[0] if failures and process.returncode == 0
                     else reason_of(process.returncode, said))
    failures += [line for line in said.splitlines() if line and not line.startswith("warning: ")]
    if process.returncode < 0:
        failures.append("op_bench: " + reason_of(process.returncode, said))
    for line in failures:
        print(line, file=sys.stderr)
        report.could_not_run(line)
    return process.returncode == 0 and not failures


def name_of(case):
    return case["op"] + "/" + case["case"]


def print_case(case):
    flops = case.get("gigaflops_per_second")
    print("%-60s %-12s %12.2f us %9.2f GB/s%s" %
          (name_of(case), case["candidate"], case["median_microseconds"],
           case["gigabytes_per_second"], "" if flops is None else " %9.2f GFLOP/s" % flops),
          flush=True)


def print_beside_copy(case):
    print("%-46s %11.2f us %9.2f GB/s %7.0f%%" %
          (name_of(case), case["median_microseconds"], case["gigabytes_per_second"],
           100 * case["share_of_copy"]), flush=True)


class Cases:
    """Prints cases as they come, and adds them to the report."""

    def __init__(self, copy, report):
        self.copy = copy  # the bandwidth of a copy, GB/s
        self.report = report
        self.large = []

    def take(self, case):
        print_case(case)
        if "gigaflops_per_second" not in case and case["bytes"] >= LARGE_BYTES:
            case["share_of_copy"] = case["gigabytes_per_second"] / self.copy
            self.large.append(case)
        self.report.add(case)

    def take_memory_case(self, case):
        case["share_of_copy"] = case["gigabytes_per_second"] / self.copy
        print_beside_copy(case)
        self.report.add(case)


def time_ops(_, flags, report):
    """Prints all ops, then those that memory limits. Returns whether all of them have run."""
    copies = []
    time_cases(["--memory", "--op=" + COPY], report, copies.append)
    cases = Cases(copies[0]["gigabytes_per_second"], report)
    failures = []
    succeeded = True
    try:
        succeeded = time_cases(["--benchmark_only", *flags], report, cases.take)
    except Failed as failed:
        failures.append(failed)
    print("\nWhat memory limits, beside a copy of 64 MiB within the device's memory, %.2f GB/s:" %
          cases.copy)
    for case in cases.large:
        print_beside_copy(case)
    try:
        succeeded = time_cases(["--memory", *flags], report, cases.take_memory_case) and succeeded
    except Failed as failed:
        failures.append(failed)
    # --op or --case may choose from one of the two lists alone.
    if len(failures) == 1 and str(failures[0]).startswith("no case of op"):
        failures = []
    for failed in failures:
        print("failed: %s" % failed, file=sys.stderr)
        report.could_not_run("op_bench: %s" % failed)
    return succeeded and not failures


def main():
    parser = argparse.ArgumentParser(prog="cuda_test.sh", allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run_command, program, summary in (
            ("bench", time_ops, "op_bench",
             "Times every operator that has a CUDA kernel, and shows those that memory limits "
             "beside a copy."),
            ("models", time_models, "model_bench",
             "Times training steps of models, with and without CUDA graphs, and in PyTorch if "
             "python3 has it.")):
        command = commands.add_parser(
            name, allow_abbrev=False, description=summary,
            epilog="All other flags are passed to %s." % program)
        command.set_defaults(run=run_command, program=program)
        command.add_argument("--json", default="", metavar="FILE",
                             help="file for all figures, as a list; default: none")
        # A line for each thing that couldn't be run, for the end of cuda_test.sh all.
        command.add_argument("--not_run", default="", help=argparse.SUPPRESS)
    commands.choices["models"].add_argument(
        "--model", default="", metavar="NAME,NAME",
        help="names of model_bench; default: " + ", ".join(MODELS))
    options, flags = parser.parse_known_args()
    report = Report(options)
    print("GPU: " + (report.gpu or "unknown, nvidia-smi doesn't tell"))
    try:
        succeeded = options.run(options, flags, report)
    except (Failed, OSError) as failed:
        print("failed: %s" % failed, file=sys.stderr)
        report.could_not_run("%s: %s" % (options.program, failed))
        succeeded = False
    sys.exit(0 if succeeded else 1)


if __name__ == "__main__":
    main()
