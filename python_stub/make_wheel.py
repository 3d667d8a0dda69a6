"""Packs the package into a wheel, with nothing but Python's own library.

usage: python3 -m python_stub.make_wheel FOLDER FILE...

Writes FOLDER/skiff-<version>-cp<NN>-cp<NN>-linux_<machine>.whl, for the Python that runs this, and prints its path. The
files are those of //python_stub, below a folder skiff. The licences are added: the LICENSE of the working directory,
and the notices of what is compiled into the extension module. Equal files make equal wheels.
"""
import base64
import hashlib
import os
import re
import sys
import sysconfig
import zipfile

from tools.installer.install import NOTICES, InstallError, notice

# The distribution's pybind11, with which the extension module is compiled, may be older than NumPy 2.
METADATA = f"""Metadata-Version: 2.1
Name: skiff
Version: %s
Summary: Programs of operators, built, differentiated, compiled and run
License: Apache-2.0
Requires-Python: =={sys.version_info.major}.{sys.version_info.minor}.*
Requires-Dist: numpy<2
"""


def tag():
    """The extension module fits one minor version of Python, and the libraries of this distribution."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def read(path):
    with open(path, "rb") as stream:
        return stream.read()


def licenses():
    """The texts of the licences by name."""
    packages = NOTICES + ("libdlpack-dev", "pybind11-dev")
    return {"LICENSE": read("LICENSE"), **{f"{package}.copyright": read(notice(package)) for package in packages}}


def make_wheel(folder, paths):
    contents = {f"skiff/{os.path.basename(path)}": read(path) for path in paths}
    version = re.search(rb'^__version__ = "(.*)"$', contents["skiff/__init__.py"], re.M)[1].decode()
    info = f"skiff-{version}.dist-info"
    contents[f"{info}/METADATA"] = (METADATA % version).encode()
    contents[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: make_wheel\nRoot-Is-Purelib: false\n"
                                 f"Tag: {tag()}\n").encode()
    contents.update({f"{info}/licenses/{name}": text for name, text in licenses().items()})
    record = [f"{name},{digest(data)},{len(data)}" for name, data in contents.items()] + [f"{info}/RECORD,,"]
    contents[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    os.makedirs(folder, exist_ok=True)
    wheel = os.path.join(folder, f"skiff-{version}-{tag()}.whl")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(contents.items()):
            entry = zipfile.ZipInfo(name)  # of 1980, whenever it is made
            entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return wheel


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        print(make_wheel(sys.argv[1], sys.argv[2:]))
    except InstallError as error:
        sys.exit(f"make_wheel: {error}")
