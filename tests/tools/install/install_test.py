"""Tests what tools/install.sh installs on distributions with different packages, with fake apt and dpkg commands."""
import os
import stat
import subprocess
import tempfile
import unittest

SCRIPT = os.path.abspath("tools/install.sh")

# Packages that aren't named in $INSTALLED and $CANDIDATES, "clang-format-14=1:14.0 g++=", are there in version 1.0;
# without a version they aren't.
VERSION = """#!/bin/bash
version=1.0
for pair in $%s; do
  if [[ "${pair%%%%=*}" == "${@: -1}" ]]; then version=${pair#*=}; fi
done
"""
STAND_INS = {
    "dpkg-query": VERSION % "INSTALLED" + """
[[ -n "$version" ]] || exit 1
if [[ "$*" == *Version* ]]; then printf '%s' "$version"; else printf 'install ok installed'; fi
""",
    "apt-cache": VERSION % "CANDIDATES" + """
[[ -n "$version" ]] || exit 0
if [[ "$1" == madison ]]; then echo "$2 | $version | a mirror"; else printf '%s:\\n  Candidate: %s\\n' "$2" "$version"; fi
""",
    "apt-get": '#!/bin/bash\necho "apt-get $*"\n',
    "sudo": '#!/bin/bash\nexec "$@"\n',
}


def install(installed, candidates):
    """Exit status and what apt-get was called with."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in STAND_INS.items():
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
            os.chmod(path, stat.S_IRWXU)
        done = subprocess.run(["bash", SCRIPT], stdout=subprocess.PIPE, text=True, check=False,
                              env={"PATH": folder + ":/usr/bin:/bin", "BAZEL": "true", "INSTALLED": installed,
                                   "CANDIDATES": candidates})
    return done.returncode, [line.split(" ", 1)[1] for line in done.stdout.splitlines() if line.startswith("apt-get ")]


INSTALL = "install -q -y --no-install-recommends "


class Install(unittest.TestCase):
    def test_does_nothing_where_all_is_there(self):
        self.assertEqual(install("clang-format-14=1:14.0.6-12 clang-format=", ""), (0, []))
        self.assertEqual(install("clang-format-14= clang-format=1:14.0-55.7~deb12u1", ""), (0, []))

    def test_installs_what_is_missing(self):
        self.assertEqual(install("clang-format=1:14.0 g++= git=", ""), (0, ["update -q", INSTALL + "g++ git"]))

    def test_another_clang_format_does_not_count(self):
        for installed in ("clang-format-14= clang-format=1:18.1.3-1", "clang-format-14= clang-format=1:140.0-1"):
            self.assertEqual(install(installed, "clang-format-14=1:14.0.6-12 clang-format=1:18.1.3-1"),
                             (0, ["update -q", INSTALL + "clang-format-14"]))
        self.assertEqual(install("clang-format-14= clang-format=", "clang-format-14= clang-format=1:14.0-55"),
                         (0, ["update -q", INSTALL + "clang-format"]))

    def test_does_without_a_clang_format_that_there_is_not(self):
        self.assertEqual(install("clang-format-14= clang-format=1:18.1.3-1",
                                 "clang-format-14= clang-format=1:18.1.3-1"), (0, []))


if __name__ == "__main__":
    unittest.main()
