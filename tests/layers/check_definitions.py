"""Finds types that a source tree defines twice under one name.

Two classes of one qualified name in one program break C++'s one-definition
rule. No compiler and no linker says so: whichever inline function the linker
keeps serves both. A type counts if it is defined at the outermost level of a
named namespace, as clang-format writes it (at the start of a line); a type in an anonymous namespace belongs to its file.

usage: check_definitions.py ROOT
"""
import re
import sys

from tests.layers.check_layers import read_tree

_NAMESPACE = re.compile(r"^(?:inline )?namespace(?: ([\w:]+))? \{$")
_NAMESPACE_END = re.compile(r"^\}  // namespace(?: ([\w:]+))?$")
# The name, with its template arguments if this is a specialization.
_TYPE = re.compile(r"^(?:class|struct|union|enum class|enum) (?:\[\[\w+\]\] )?([\w:]+(?:<.*?>)?)(?: final)?(?: : .*)? \{")


def types_of(text):
    """[(line, qualified name)] of the types that a file defines for the whole program."""
    found = []
    namespaces = []
    for number, line in enumerate(text.splitlines(), 1):
        opened = _NAMESPACE.match(line)
        if opened:
            namespaces.append(opened.group(1))  # None: anonymous
        elif _NAMESPACE_END.match(line):
            if namespaces:
                namespaces.pop()
        elif None not in namespaces:
            defined = _TYPE.match(line)
            if defined:
                found.append((number, "::".join(namespaces + [defined.group(1)])))
    return found


def check(sources):
    """The types of sources ({path: text}) that are defined in two places, as messages."""
    places = {}
    for path in sorted(sources):
        for line, name in types_of(sources[path]):
            places.setdefault(name, []).append("%s:%d" % (path, line))
    return ["%s is defined in %s" % (name, " and in ".join(where))
            for name, where in sorted(places.items()) if len(where) > 1]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    mistakes = check(read_tree(sys.argv[1]))
    for mistake in mistakes:
        print(mistake)
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
