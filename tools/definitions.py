#!/usr/bin/env python3
"""Copies a generated list of functions, once the files define them.

usage: definitions.py CONTENT OUTPUT DOC [FILE FUNCTION]...

CONTENT calls a function of each FILE. A file that lacks it would otherwise only be noticed by the
linker, which doesn't know which file ought to have it. DOC is the page that the message points to.
"""
import re
import shutil
import sys


def mistake(path, text, function, doc):
    """What is wrong with a file that ought to define `function`; None if nothing is."""
    defined = re.findall(r"^void\s+(?:\w+::)*((?:Register|Add)\w+)\s*\(", text, re.MULTILINE)
    if function in defined:
        return None
    found = ", ".join(defined) if defined else "none such"
    return f"{path}: expected a definition of `void {function}(…)`, as the file's name asks for; found {found} ({doc})"


def main():
    content, output, doc = sys.argv[1:4]
    mistakes = []
    for path, function in zip(sys.argv[4::2], sys.argv[5::2]):
        with open(path, encoding="utf-8") as stream:
            mistakes.append(mistake(path, stream.read(), function, doc))
    mistakes = [m for m in mistakes if m]
    if mistakes:
        sys.exit("\n".join(mistakes))
    shutil.copyfile(content, output)


if __name__ == "__main__":
    main()
