"""What the command run_program does with its arguments."""
import os
import struct
import subprocess
import tempfile
import unittest

COMMAND = os.path.abspath("tools/run_program/run_program")


def run(*arguments):
    return subprocess.run([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def varint(number):
    number %= 1 << 64
    text = b""
    while number > 127:
        text += bytes([number % 128 + 128])
        number //= 128
    return text + bytes([number])


def message(*fields):
    """Of protobuf: (number, an integer, a float, a string or a message)."""
    text = b""
    for number, value in fields:
        if isinstance(value, int):
            text += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            text += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            value = value.encode() if isinstance(value, str) else value
            text += varint(number << 3 | 2) + varint(len(value)) + value
    return text


def filling_program():
    """y = 1.5, three times."""
    tensor = message((1, 5), (2, 3))
    variable = message((1, "y"), (2, message((1, 7), (3, message((1, tensor))))))
    op = message((2, message((1, "Out"), (2, "y"))), (3, "fill_constant"),
                 (4, message((1, "shape"), (2, 11), (15, 3))),
                 (4, message((1, "dtype"), (2, 0), (3, 5))),
                 (4, message((1, "value"), (2, 1), (4, 1.5))))
    return message((1, message((1, 0), (2, -1), (3, variable), (4, op))))


class Command(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.program = os.path.join(self.folder, "main.pb")
        with open(self.program, "wb") as stream:
            stream.write(filling_program())

    def test_shows_what_it_fetched(self):
        result = run("--program=" + self.program, "--fetch=y")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, "1 step\ny float32 [3] = [1.5 1.5 1.5]\n")

    def test_shows_times_and_memory_of_several_steps(self):
        result = run("--program=" + self.program, "--steps=6")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"\A6 steps: [\d.]+ ms a step \(median of 4\), peak RSS \d+ MB\n\Z")

    def test_dumps_the_passes_that_run(self):
        dumped = os.path.join(self.folder, "passes")
        result = run("--program=" + self.program, "--fetch=y", "--passes=-early_update", "--pass_limit=2",
                     "--dump_passes=" + dumped)
        self.assertEqual(result.returncode, 0, result.stderr)
        names = sorted(os.listdir(dumped))
        self.assertEqual([name[:3] for name in names], ["01_", "02_"])
        self.assertEqual(names[0], "01_dead_code.txt")
        with open(os.path.join(dumped, names[0]), encoding="utf-8") as stream:
            self.assertIn("{Out: [y#0 float32 [3]]} = fill_constant() {", stream.read())

    def test_refuses_a_limit_of_passes_that_is_none(self):
        result = run("--program=" + self.program, "--pass_limit=-2")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "error: --pass_limit=-2: expected at least 0, or -1 for all\n")

    def test_refuses_a_negative_number_of_threads(self):
        result = run("--program=" + self.program, "--threads=-1")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, "error: threads = -1: expected no negative number\n")

    def test_tells_what_is_wrong_and_fails(self):
        result = run("--program=/nowhere/main.pb")
        self.assertEqual(result.returncode, 1)
        self.assertIn("error: ", result.stderr)
        self.assertIn("/nowhere/main.pb", result.stderr)

    def test_refuses_what_is_no_flag(self):
        result = run("main.pb")
        self.assertEqual(result.returncode, 2)
        self.assertIn('"main.pb" is no flag', result.stderr)

    def test_fails_if_a_job_fails(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as jobs:
            jobs.write('{"program": "/nowhere/main.pb"}\n')
            jobs.flush()
            result = run("--jobs=" + jobs.name)
        self.assertEqual(result.returncode, 1)
        self.assertIn("job 1: ", result.stdout)
        self.assertIn("0 ran, 1 failed", result.stdout)

    def test_succeeds_without_jobs(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as jobs:
            result = run("--jobs=" + jobs.name)
        self.assertEqual(result.returncode, 0)
        self.assertIn("0 ran, 0 failed", result.stdout)


if __name__ == "__main__":
    unittest.main()
