"""An installation of Skiff for tests, and the files that docs/install.md shows."""
import os
import re
import subprocess
import tempfile

_SHOWN = re.compile(r"`([\w.]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATH = "/usr/local/bin:/usr/bin:/bin"


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def run(command, cwd=None, environment=None):
    """What a command prints. An AssertionError with that, unless it exits with status 0."""
    threads = {"OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env={"PATH": PATH, **threads, **(environment or {})})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def installer(*arguments, **options):
    """Runs the installer, with options of subprocess.run, and returns the finished process."""
    return subprocess.run(["tools/installer/install", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, **options)


def temporary_folder():
    return tempfile.mkdtemp(dir=os.environ["TEST_TMPDIR"])


def install():
    """The prefix of a new installation, which has moved since it was made."""
    folder = temporary_folder()
    done = installer(f"--prefix={folder}/made")
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    os.rename(f"{folder}/made", f"{folder}/moved")
    return f"{folder}/moved"


def shown_files(names):
    """{name: text} of files that docs/install.md shows."""
    shown = dict(_SHOWN.findall(read("docs/install.md")))
    return {name: shown[name] for name in names}
