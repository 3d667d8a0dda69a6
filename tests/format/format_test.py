"""Tests that the C++ and CUDA files of the tree are formatted by .clang-format."""
import os
import re
import shutil
import subprocess
import unittest

ROOT = os.path.dirname(os.path.realpath("layers.txt"))
SOURCES = (".h", ".cc", ".cu", ".cuh")
# Releases of clang-format format some lines differently, so the test uses this one.
MAJOR = 14


def clang_format():
    """Returns the path of a clang-format of that release, or None."""
    for name in ("clang-format-%d" % MAJOR, "clang-format"):
        path = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
        if not path:
            continue
        version = subprocess.run([path, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        match = re.search(r"version (\d+)\.", version)
        if match and int(match.group(1)) == MAJOR:
            return path
    return None


def tracked_sources():
    """Paths from the root; all files where git can't say which it tracks."""
    try:
        names = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z"], cwd=ROOT, check=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        names = []
        for folder, folders, files in os.walk(ROOT):
            folders[:] = [f for f in folders if not f.startswith((".", "bazel-"))]
            names += [os.path.relpath(os.path.join(folder, f), ROOT) for f in files]
    return sorted(n for n in names if n.endswith(SOURCES) and os.path.exists(os.path.join(ROOT, n)))


class Format(unittest.TestCase):
    def test_sources_are_formatted(self):
        tool = clang_format()
        if tool is None:
            self.skipTest("no clang-format %d" % MAJOR)
        sources = tracked_sources()
        self.assertGreater(len(sources), 0, "no sources found under the workspace")
        run = subprocess.run([tool, "--dry-run", "-Werror", "--style=file", *sources], cwd=ROOT,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode != 0:
            wrong = sorted(set(re.findall(r"^([^:\n]+):\d+:\d+: error", run.stdout, re.MULTILINE)))
            self.fail("clang-format -i would change:\n%s\n%s" % ("\n".join(wrong), run.stdout[:4000]))
