"""What `skiff plan_memory` reads, writes, prints and refuses."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

COMMAND = os.path.abspath("tools/skiff/skiff")
WRITE_BUFFERS = os.path.abspath("tests/memory/write_buffers.py")


def run(*arguments):
    return subprocess.run([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class PlanMemory(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.input = os.path.join(folder.name, "in.csv")
        self.output = os.path.join(folder.name, "out.csv")

    def plan(self, text, *flags):
        with open(self.input, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        return run("plan_memory", "--input=" + self.input, *flags)

    def read_output(self):
        with open(self.output, encoding="utf-8") as stream:
            return stream.read()

    def test_writes_offsets_behind_the_columns_of_the_input(self):
        result = self.plan("size,id,upper,lower\r\n10,a b,2,0\r\n10,c,4,2\r\n0,c,9,-3\n", "--output=" + self.output)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout,
                         r"\A3 buffers: bound 10 bytes, peak 10 bytes, ratio 1\.000000, [\d.]+ s\n\Z")
        self.assertEqual(self.read_output(), "size,id,upper,lower,offset\n10,a b,2,0,0\n10,c,4,2,0\n0,c,9,-3,0\n")

    def test_puts_a_rectangle_together_again(self):
        buffers = subprocess.run([sys.executable, WRITE_BUFFERS, "cuts", "60", "--instants=100"],
                                 stdout=subprocess.PIPE, text=True, check=True).stdout
        result = self.plan(buffers, "--output=" + self.output, "--json", "--time_limit_s=60")
        self.assertEqual(result.returncode, 0, result.stderr)
        figures = json.loads(result.stdout)
        seconds = figures.pop("seconds")
        self.assertGreaterEqual(seconds, 0)
        self.assertEqual(figures, {"buffers": 60, "bound": 1 << 20, "peak": 1 << 20, "ratio": 1.0})
        rows = [line.split(",") for line in self.read_output().splitlines()[1:]]
        self.assertEqual(len(rows), 60)
        boxes = [tuple(map(int, row[1:])) for row in rows]
        for i, (lower, upper, size, offset) in enumerate(boxes):
            self.assertTrue(0 <= offset <= (1 << 20) - size)
            for other in boxes[:i]:
                self.assertFalse(lower < other[1] and other[0] < upper and
                                 offset < other[3] + other[2] and other[3] < offset + size)

    def test_takes_instants_and_sizes_of_64_bits(self):
        last = (1 << 63) - 1
        result = self.plan(f"id,lower,upper,size\na,{-last - 1},{last},{1 << 58}\nb,0,1,{1 << 58}\n", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["peak"], 1 << 59)

    def test_ends_with_1_where_the_capacity_is_not_met(self):
        text = "id,lower,upper,size\na,0,2,10\nb,1,3,10\n"
        result = self.plan(text, "--capacity=20", "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(json.loads(result.stdout)["fits"])
        result = self.plan(text, "--capacity=19", "--output=" + self.output)
        self.assertEqual(result.returncode, 1)
        self.assertIn("\nthe peak is 1 bytes above the capacity of 19 bytes\n", result.stdout)
        self.assertTrue(os.path.exists(self.output))
        result = self.plan(text, "--capacity=19", "--json")
        self.assertEqual(result.returncode, 1)
        self.assertFalse(json.loads(result.stdout)["fits"])

    def test_aligns_offsets(self):
        result = self.plan("id,lower,upper,size\na,0,1,5\nb,0,1,5\n", "--alignment=64", "--output=" + self.output)
        self.assertEqual(result.returncode, 0, result.stderr)
        offsets = sorted(int(line.split(",")[4]) for line in self.read_output().splitlines()[1:])
        self.assertEqual(offsets, [0, 64])

    def test_plans_nothing(self):
        result = self.plan("id,lower,upper,size\n", "--json", "--output=" + self.output)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["ratio"], 1)
        self.assertEqual(self.read_output(), "id,lower,upper,size,offset\n")

    def test_says_what_is_wrong_with_a_table(self):
        header = "id,lower,upper,size\n"
        columns = "expected the columns id, lower, upper, size in any order"
        for text, message in (
                ("", ": the file is empty, expected the header id,lower,upper,size"),
                ("id,lower,size\n", f', line 1: found the header "id,lower,size", {columns}'),
                ("id,lower,upper,size,x\n", f', line 1: found the header "id,lower,upper,size,x", {columns}'),
                ("a,0,1,5\n", f', line 1: found the header "a,0,1,5", {columns}'),
                ("id,lower,lower,size\n", f', line 1: found the header "id,lower,lower,size", {columns}'),
                (header + "a,0,1\n", ", line 2: found 3 columns, expected the 4 of the header"),
                (header + "\na,0,1,5\n", ", line 2: found 1 columns, expected the 4 of the header"),
                (header + "a,0,1,5\nb,0,1.5,5\n", ', line 3: found upper "1.5", expected a 64-bit integer'),
                (header + "a,0,1,\n", ', line 2: found size "", expected a 64-bit integer'),
                (header + "a,0,1, 5\n", ', line 2: found size " 5", expected a 64-bit integer'),
                (header + "a,0,9223372036854775808,5\n",
                 ', line 2: found upper "9223372036854775808", expected a 64-bit integer'),
                (header + "a,0,1,-5\n", ", line 2: found size -5, expected at least 0"),
                (header + "a,1,1,5\n", ", line 2: found lower 1 and upper 1, expected lower < upper")):
            with self.subTest(text):
                result = self.plan(text, "--output=" + self.output)
                self.assertEqual(result.returncode, 1)
                self.assertEqual(result.stderr, f"error: {self.input}{message}\n")
                self.assertFalse(os.path.exists(self.output))

    def test_says_what_is_wrong_with_its_arguments(self):
        self.assertEqual(run("plan_memory").stderr, "error: --input is missing: expected a CSV file\n")
        result = run("plan_memory", "--input=" + self.input)
        self.assertEqual(result.returncode, 1)
        self.assertIn("No such file", result.stderr)
        for flag in ("--capacity=-1", "--time_limit_s=-1", "--time_limit_s=nan", "--alignment=3"):
            with self.subTest(flag):
                result = self.plan("id,lower,upper,size\na,0,1,1\n", flag)
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, r"\Aerror: .*: expected ")

    def test_lists_subcommands_and_their_flags(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"\n  plan_memory\n      \w")
        result = run("plan_memory", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(re.findall(r"^  --(\w+)", result.stdout, re.MULTILINE),
                         ["alignment", "capacity", "input", "json", "output", "time_limit_s"])
        result = run("plan")
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stderr,
                         'error: there is no subcommand "plan": expected one of convert, memory, plan_memory, summary, verify; --help lists them\n')


if __name__ == "__main__":
    unittest.main()
