#!/usr/bin/python3
"""Installs Skiff's library, headers and programs.

usage: bazel run --config=opt //tools:install -- --prefix=DIR [--uninstall]

DIR is an absolute path; missing folders are made, and everybody may read them. Files of an earlier installation are
replaced one by one, each atomically; those that this version doesn't have are removed at the end, except shared
libraries of other binary interfaces, which programs may still need.

DIR/share/skiff/manifest lists the files and, with a slash at the end, the folders that the installer made below DIR.
--uninstall removes these files, then those of these folders that are empty, and nothing else.
"""
import argparse
import contextlib
import fcntl
import json
import os
import re
import shutil
import sys

INSTALLATION = "tools/installer/installation.json"
MANIFEST = "share/skiff/manifest"
# The Debian packages whose code is inside what is installed: headers compiled into the library, and for programs and
# libskiff_data also other headers and static libraries.
NOTICES = ("libdnnl-dev", "libhwy-dev", "libprotozero-dev", "nlohmann-json3-dev")
OTHER_NOTICES = ("libgflags-dev", "libicu-dev", "libsentencepiece-dev")
TEMPLATES = {
    "BUILD.bazel.in": "share/skiff/bazel/BUILD.bazel",
    "SkiffConfig.cmake.in": "lib/cmake/Skiff/SkiffConfig.cmake",
    "SkiffConfigVersion.cmake.in": "lib/cmake/Skiff/SkiffConfigVersion.cmake",
    "SkiffTargets.cmake.in": "lib/cmake/Skiff/SkiffTargets.cmake",
    "skiff.pc.in": "lib/pkgconfig/skiff.pc",
    "skiff_data.pc.in": "lib/pkgconfig/skiff_data.pc",
    "skiff_onnx.pc.in": "lib/pkgconfig/skiff_onnx.pc",
}
_INCLUDE = re.compile(r'^(\s*#\s*include\s*)"([^"]+)"', re.MULTILINE)


class InstallError(Exception):
    """What is wrong, for the user."""


def read(path):
    with open(path, encoding="utf-8") as stream:
        return stream.read()


def closure(roots, headers):
    """The headers that `roots` include, directly or not, with the roots. Throws for one that isn't among `headers`."""
    found = list(roots)
    for header in found:
        for match in _INCLUDE.finditer(read(header)):
            include = match[2]
            if include not in headers:
                raise InstallError(f'{header} includes "{include}", expected a header of Skiff\'s public libraries')
            if include not in found:
                found.append(include)
    return sorted(found)


def installed_name(header):
    """skiff/skiff.h, and skiff/framework/base/error.h for framework/base/error.h."""
    return header if header.startswith("skiff/") else "skiff/" + header


def installed_text(text):
    """A header with its quoted includes as they are installed."""
    return _INCLUDE.sub(lambda match: f'{match[1]}"{installed_name(match[2])}"', text)


def notice(package):
    """Where the distribution has the copyright notice of a package."""
    path = f"/usr/share/doc/{package}/copyright"
    if not os.path.exists(path):
        raise InstallError(f"{path} doesn't exist: the installation includes the copyright notice of {package}")
    return path


def fill(template, installation):
    """A template with its @NAMES@ filled in."""
    values = {"VERSION": installation["version"], "ABI_VERSION": installation["abi_version"]}
    for library in installation["libraries"]:
        flags = [os.path.realpath(archive) for archive in reversed(library["archives"])] + library["link_flags"]
        prefix = library["name"].upper()
        values[prefix + "_LINK_FLAGS"] = " ".join(flags)
        values[prefix + "_CMAKE_LINK_FLAGS"] = ";".join(flags)
        values[prefix + "_BAZEL_LINK_FLAGS"] = ", ".join(json.dumps(flag) for flag in flags)
    return re.sub("@([A-Z_]+)@", lambda match: values[match[1]], template)


def contents(installation):
    """What is installed: a map from a path below the prefix to ("text", text), ("link", target), or ("file" or
    "program", source)."""
    version, abi_version = installation["version"], installation["abi_version"]
    found = {
        "share/doc/skiff/LICENSE": ("file", installation["license"]),
        # A repository for Bazel, without a WORKSPACE in the prefix itself.
        "share/skiff/bazel/WORKSPACE": ("text", 'workspace(name = "skiff")\n'),
        "share/skiff/bazel/include": ("link", "../../../include"),
        "share/skiff/bazel/lib": ("link", "../../../lib"),
    }
    for library in installation["libraries"]:
        name = library["name"]
        found[f"lib/{name}.a"] = ("file", library["static"])
        found[f"lib/{name}.so.{version}"] = ("file", library["shared"])
        found[f"lib/{name}.so.{abi_version}"] = ("link", f"{name}.so.{version}")
        found[f"lib/{name}.so"] = ("link", f"{name}.so.{abi_version}")
    for plugin in installation["plugins"]:
        found["lib/skiff/" + os.path.basename(plugin)] = ("file", plugin)
    for header in closure(installation["public_headers"], set(installation["headers"])):
        found["include/" + installed_name(header)] = ("text", installed_text(read(header)))
    for package in NOTICES + OTHER_NOTICES:
        found[f"share/doc/skiff/{package}.copyright"] = ("file", notice(package))
    for name, program in installation["programs"].items():
        found["bin/" + name] = ("program", program)
    for name, template in installation["templates"].items():
        found[TEMPLATES[name]] = ("text", fill(read(template), installation))
    return found


def write(path, kind, content):
    """Makes or replaces a file atomically."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}")
    try:
        if kind == "link":
            os.symlink(content, temporary)
        elif kind == "text":
            with open(temporary, "w", encoding="utf-8") as stream:
                stream.write(content)
            os.chmod(temporary, 0o644)
        else:
            shutil.copyfile(content, temporary)
            os.chmod(temporary, 0o755 if kind == "program" else 0o644)
        os.replace(temporary, path)
    except BaseException:  # Ctrl-C, too: nobody else knows of the temporary file.
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise


def installed_before(prefix):
    """The files and folders of an earlier installation, none without one. Throws for a path that leads out of the
    prefix."""
    path = os.path.join(prefix, MANIFEST)
    if not os.path.exists(path):
        return []
    names = read(path).splitlines()
    for name in names:
        if os.path.isabs(name) or ".." in name.split("/"):
            raise InstallError(f"{path}: found {name}, expected a path below the prefix")
    return names


def write_manifest(prefix, names):
    write(os.path.join(prefix, MANIFEST), "text", "".join(name + "\n" for name in sorted(names)))


def folders_of(names):
    """All folders of files below the prefix, with a slash at the end as in the manifest."""
    return {name[:end.end()] for name in names for end in re.finditer("/", name)}


def remove(prefix, names):
    """Removes files, the manifest last, and then those of the folders that are empty. Keeps links to folders."""
    for name in sorted(names, key=lambda name: (name == MANIFEST, name)):
        path = os.path.join(prefix, name)
        if not name.endswith("/") and os.path.lexists(path):
            os.unlink(path)
    for name in sorted(names, reverse=True):
        path = os.path.join(prefix, name.rstrip("/"))
        if name.endswith("/") and os.path.isdir(path) and not os.path.islink(path) and not os.listdir(path):
            os.rmdir(path)


@contextlib.contextmanager
def locked(prefix):
    """No other installer works in the prefix meanwhile. Throws if one does."""
    folder = os.open(prefix, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InstallError(f"another installer is at work in {prefix}") from None
        yield
    finally:
        os.close(folder)


def check_prefix(prefix):
    if not os.path.isabs(prefix):
        raise InstallError(f"--prefix={prefix}: expected an absolute path")
    existing = prefix
    while not os.path.lexists(existing):
        existing = os.path.dirname(existing)
    if not os.path.isdir(existing):
        raise InstallError(f"--prefix={prefix}: {existing} isn't a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InstallError(f"--prefix={prefix}: can't write to {existing}")


def mebibytes(path):
    return f"{os.path.getsize(path) / 2**20:.1f} MiB"


def replace(prefix, files, abi_version):
    """Writes the files, and removes those of an earlier installation that aren't among them."""
    before = set(installed_before(prefix))
    folders = folders_of({*files, MANIFEST})
    made = {name for name in folders if not os.path.lexists(os.path.join(prefix, name.rstrip("/")))}
    # First the list, so that an installation that breaks off can be removed, too.
    write_manifest(prefix, {*files, *made, *before, MANIFEST})
    for name, (kind, content) in sorted(files.items()):
        write(os.path.join(prefix, name), kind, content)
    # Programs name libskiff.so.<their ABI version>, a link to libskiff.so.<version>; so with those beside it.
    kept = {name for name in before
            if re.match(r"lib/libskiff(_data|_onnx)?[.]so[.]", name) and f".so.{abi_version}." not in name}
    old = before - {*files, *folders, *kept, MANIFEST}
    remove(prefix, old)
    # Folders with files of others stay, and stay on the list.
    full = {name for name in old if name.endswith("/") and os.path.lexists(os.path.join(prefix, name.rstrip("/")))}
    write_manifest(prefix, {*files, *made, *kept, *(before & folders), *full, MANIFEST})


def install(prefix):
    if not os.path.exists(INSTALLATION):
        raise InstallError("run it by: bazel run --config=opt //tools:install -- --prefix=DIR")
    installation = json.loads(read(INSTALLATION))
    files = contents(installation)
    os.makedirs(prefix, exist_ok=True)
    with locked(prefix):
        replace(prefix, files, installation["abi_version"])
    headers = sum(name.startswith("include/") for name in files)
    print(f"Skiff {installation['version']} is in {prefix}:")
    print(f"  include/skiff   {headers} headers; include <skiff/skiff.h>; <skiff/op.h> and <skiff/pass.h> for your own operators and passes; <skiff/ranks.h>; <skiff/data.h>; <skiff/onnx.h>")
    for library in installation["libraries"]:
        for name in (f"{library['name']}.so.{installation['version']}", f"{library['name']}.a"):
            print(f"  lib/{name:<23} {mebibytes(os.path.join(prefix, 'lib', name))}")
    for plugin in installation["plugins"]:
        name = "skiff/" + os.path.basename(plugin)
        print(f"  lib/{name:<23} {mebibytes(os.path.join(prefix, 'lib', name))}")
    print(f"  bin             {', '.join(sorted(installation['programs']))}")
    print(f"  share           licences, a repository for Bazel, the list of all {len(files) + 1} files ({MANIFEST})")
    if installation["compilation_mode"] != "opt":
        print("This is a slow build: install with --config=opt.")
    abi_version = installation["abi_version"]
    print(f"CMake: find_package(Skiff {abi_version} REQUIRED) with -DCMAKE_PREFIX_PATH={prefix}; link Skiff::skiff")
    print(f"make:  PKG_CONFIG_PATH={prefix}/lib/pkgconfig pkg-config --cflags --libs skiff")


def uninstall(prefix):
    if not os.path.exists(os.path.join(prefix, MANIFEST)):
        raise InstallError(f"{os.path.join(prefix, MANIFEST)} doesn't exist: Skiff isn't installed there")
    with locked(prefix):
        names = installed_before(prefix)
        remove(prefix, names)
    print(f"removed Skiff from {prefix}: {sum(not name.endswith('/') for name in names)} files")


def main(arguments):
    parser = argparse.ArgumentParser(prog="install", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS)
    parser.add_argument("--prefix", metavar="DIR", required=True, help="the folder to install into, such as /opt/skiff")
    parser.add_argument("--uninstall", action="store_true", help="remove the installation")
    options = parser.parse_args(arguments)
    # Folders that everybody may read, whoever installs.
    os.umask(0o022)
    try:
        check_prefix(options.prefix)
        prefix = os.path.normpath(options.prefix)
        uninstall(prefix) if options.uninstall else install(prefix)
    except InstallError as error:
        sys.exit(f"install: {error}")
    except OSError as error:
        sys.exit(f"install: can't write {error.filename}: {error.strerror}")


if __name__ == "__main__":
    main(sys.argv[1:])
