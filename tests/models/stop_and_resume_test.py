"""Tests Ctrl-C and SIGTERM: the training saves and prints a command that continues it to the same end."""
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import kill_and_resume as script  # noqa: E402

PROGRAM = "models/mlp/train"
# Many epochs: the signals come long before the last.
FLAGS = ["--threads=1", "--epochs=20", "--limit_samples=480", "--validation_samples=50", "--batch_size=32",
         "--hidden_units=16", "--dropout=0.2"]


def stopped(number, flags):
    """Sends the signal when an epoch has ended; returns exit status and output."""
    output, sent = "", False
    with subprocess.Popen([PROGRAM, *flags], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            output += line
            if not sent and re.match(r"epoch \d+/20 .* images/s$", line):
                process.send_signal(number)
                sent = True
        return process.wait(), output


class StopAndResume(unittest.TestCase):
    def flags_named(self, output):
        """Returns the arguments of the command at the end of the output."""
        found = re.search(r"^weights [0-9a-f]{16}\nstopped and saved; go on with:\n  (.*)\n\Z", output, re.MULTILINE)
        self.assertIsNotNone(found, output)
        words = shlex.split(found.group(1))
        self.assertEqual(words[:2], ["tools/train.sh", "mlp"])
        return words[2:]

    def test_the_command_that_is_named_leads_to_the_end_of_the_unbroken_one(self):
        with tempfile.TemporaryDirectory() as folder:
            unbroken, broken = os.path.join(folder, "unbroken"), os.path.join(folder, "bro ken")
            wanted = script.outcome(unbroken, script.Training([PROGRAM, *FLAGS], 0).run(unbroken))
            flags = [*FLAGS, "--stop_after", "100000", "--output_dir", broken]
            for number in (signal.SIGINT, signal.SIGTERM):
                status, output = stopped(number, flags)
                self.assertEqual(status, 128 + number, output)
                flags = self.flags_named(output)
            done = subprocess.run([PROGRAM, *flags], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertEqual(script.outcome(broken, done.stdout), wanted)


if __name__ == "__main__":
    unittest.main()
