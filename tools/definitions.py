#!/usr/bin/env python3
"""Checks that files define what a generated source uses, and copies the source.

usage: definitions.py CONTENT OUTPUT DOC [FILE DEFINITION[:TOPIC]]...

CONTENT uses a DEFINITION of each FILE, a function or `struct NAME`, and is copied to OUTPUT.
Without this check, only the linker would notice that a function is missing, and it can't say which
file should define it. With a TOPIC, the file must also begin with a comment about it. DOC is the
page that the message points to.
"""
import re
import shutil
import sys


def mistake(path, text, definition, doc, topic=""):
    """Returns what is wrong with a file that should have `definition`; None if nothing is."""
    if topic and not text.startswith((f"// {topic}:", f"// {topic} ", f"// {topic},")):
        return f"{path}: expected the file to open with a comment `// {topic}: …`, the formula and its source ({doc})"
    if definition.startswith("struct "):
        defined = re.findall(r"^(struct \w+Formula)\b", text, re.MULTILINE)
        expected = definition
    else:
        defined = re.findall(r"^void\s+(?:\w+::)*((?:Register|Add)\w+)\s*\(", text, re.MULTILINE)
        expected = f"void {definition}(…)"
    if definition in defined:
        return None
    found = ", ".join(defined) if defined else "none such"
    return f"{path}: expected a definition of `{expected}`, as the file's name asks for; found {found} ({doc})"


def main():
    content, output, doc = sys.argv[1:4]
    mistakes = []
    for path, definition in zip(sys.argv[4::2], sys.argv[5::2]):
        definition, _, topic = definition.partition(":")
        with open(path, encoding="utf-8") as stream:
            mistakes.append(mistake(path, stream.read(), definition, doc, topic))
    mistakes = [m for m in mistakes if m]
    if mistakes:
        sys.exit("\n".join(mistakes))
    shutil.copyfile(content, output)


if __name__ == "__main__":
    main()
