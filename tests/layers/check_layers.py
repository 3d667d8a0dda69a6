"""Checks the #include lines of a source tree against its table of ranks.

layers.txt says which rank a package has. A file may include its own package
and packages of lower rank. Reported as well: an include or a file that no
package of the table covers, an include that isn't written from the root,
cycles of files that include each other, and cycles of pairs: x.h and the
source that implements it are one pair, so if x.cc includes y.h, y.cc doesn't
include x.h.

usage: check_layers.py ROOT
"""
import os
import re
import sys

SOURCES = (".h", ".cc", ".cu", ".cuh")

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Layers:
    """The table: which package a path belongs to, and the package's rank."""

    def __init__(self, text):
        self.ranks = {}  # entry -> rank
        self.external = []
        for number, line in enumerate(text.splitlines(), 1):
            fields = line.partition("#")[0].split()
            if not fields:
                continue
            if len(fields) != 2:
                raise ValueError("layers.txt:%d: expected two fields: %s" % (number, line))
            if fields[0] == "external":
                self.external.append(fields[1])
                continue
            if fields[1] in self.ranks:
                raise ValueError("layers.txt:%d: %s is listed twice" % (number, fields[1]))
            if not fields[0].isdigit():
                raise ValueError("layers.txt:%d: rank %s of %s: expected a whole number" %
                                 (number, fields[0], fields[1]))
            self.ranks[fields[1]] = int(fields[0])

    def package(self, path):
        """(package, rank) of a file; None if the table doesn't cover it."""
        parts = path.split("/")[:-1]
        for length in range(len(parts), 0, -1):
            prefix = "/".join(parts[:length])
            if prefix in self.ranks:
                return prefix, self.ranks[prefix]
            family = "/".join(parts[:length - 1]) + "/*"
            if family in self.ranks:
                return prefix, self.ranks[family]
        return None

    def is_external(self, include):
        return include.startswith(tuple(self.external))


def includes_of(text):
    """[(line, path)] of the quoted includes."""
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1)) for m in _INCLUDE.finditer(text)]


def check(layers, sources):
    """The mistakes of sources ({path: text}), as messages."""
    mistakes = []
    graph = {}
    for path in sorted(sources):
        own = layers.package(path)
        if own is None:
            mistakes.append("%s: no package of layers.txt covers this file" % path)
            continue
        graph[path] = []
        for line, include in includes_of(sources[path]):
            if layers.is_external(include):
                continue
            where = '%s:%d: includes "%s"' % (path, line, include)
            other = layers.package(include)
            if other is None:
                mistakes.append("%s, which no package of layers.txt covers (headers of ours are "
                                "written from the root, those of others in <>)" % where)
                continue
            graph[path].append(include)
            if other[0] != own[0] and other[1] >= own[1]:
                mistakes.append("%s: %s has rank %d, %s only %d" % (where, other[0], other[1], own[0], own[1]))
    of_files = ["include cycle: " + " -> ".join(cycle) for cycle in cycles(graph)]
    # A cycle of files is one of their pairs, too: it is reported once.
    return mistakes + (of_files or pair_cycles(graph))


def pair_cycles(graph):
    """The cycles of pairs among the files of {file: [included]}, as messages that name the includes."""
    pairs = {}  # pair -> {pair: the include that leads there}
    for path, includes in sorted(graph.items()):
        pair = _pair_of(path)
        for include in includes:
            if _pair_of(include) != pair:
                pairs.setdefault(pair, {}).setdefault(_pair_of(include), "%s -> %s" % (path, include))
    return ["cycle of pairs: " + ", ".join(pairs[a][b] for a, b in zip(cycle, cycle[1:])) for cycle in cycles(pairs)]


def _pair_of(path):
    """A path without its extension, which a header and its source have in common."""
    return os.path.splitext(path)[0]


def cycles(graph):
    """One cycle through each back edge of a depth-first search of {file: [included]}."""
    found = []
    done = set()
    for start in sorted(graph):
        if start in done:
            continue
        path, on_path = [start], {start}
        stack = [iter(graph[start])]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                on_path.discard(path[-1])
                done.add(path.pop())
            elif following in on_path:
                # A source that Highway compiles repeatedly names itself in a
                # macro, not in an include; so a file in its own list is a mistake.
                found.append(path[path.index(following):] + [following])
            elif following in graph and following not in done:
                path.append(following)
                on_path.add(following)
                stack.append(iter(graph[following]))
    return found


def read_tree(root):
    """{path: text} of the sources under root; hidden and build folders are left out."""
    sources = {}
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "bazel-")))
        for name in files:
            if name.endswith(SOURCES):
                full = os.path.join(folder, name)
                with open(full, encoding="utf-8", errors="replace") as f:
                    sources[os.path.relpath(full, root)] = f.read()
    return sources


def main():
    root = sys.argv[1]
    with open(os.path.join(root, "layers.txt"), encoding="utf-8") as f:
        layers = Layers(f.read())
    mistakes = check(layers, read_tree(root))
    print("\n".join(mistakes) if mistakes else "layers: ok")
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
