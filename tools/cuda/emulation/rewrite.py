#!/usr/bin/env python3
"""rewrite.py <preprocessed CUDA source >C++ source

What g++ can't read becomes calls of tools/cuda/emulation/device.h:

    kernel<<<grid, block>>>(a, b);      Launch("kernel", LaunchShape(grid, block), …, kernel, a, b);
    __shared__ float x[32];             auto& x = a variable of the block, found by a key;
    extern __shared__ float x[];        auto& x = the launch's shared memory;

The input has no comments and no macros any more, and no line is moved.
"""
import re
import sys

NAMESPACE = "::skiff::cuda_emulation::"
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|(?<![0-9a-fA-F])\'(?:[^\'\\\n]|\\.)+\'')
SHARED = re.compile(r"\b(extern\s+)?__shared__\b([^;=]*);")
DECLARED = re.compile(r"^(?P<type>.*?[\s&*>])(?P<name>\w+)\s*(?P<dims>(?:\[.*\])?)\s*$", re.S)
OPEN, CLOSE = "([{", ")]}"
MAX_NAME = 1000  # characters of a kernel's name with namespaces


def line_of(text, at):
    marker = None
    for marker in re.finditer(r'^# (\d+) "(.*?)"', text[:at], re.M):
        pass
    if marker is None:
        return "line %d" % (text.count("\n", 0, at) + 1)
    line = int(marker[1]) + text.count("\n", marker.end(), at) - 1
    return "%s:%d" % (marker[2], line)


def fail(text, at, what):
    sys.exit("%s: %s" % (line_of(text, at), what))


def shared_variable(text, match):
    declaration = re.sub(r"__attribute__\s*\(\(.*?\)\)|\balignas\s*\([^()]*\)|\bvolatile\b", " ",
                         match[2])
    parts = DECLARED.match(declaration)
    if parts is None or "," in re.sub(r"<[^<>]*>", "", parts["type"]):
        fail(text, match.start(), "__shared__: expected one variable without initial value")
    name, lines = parts["name"], "\n" * match[0].count("\n")
    kind = parts["type"].strip() + parts["dims"].strip()
    if match[1]:
        return "auto& %s = *static_cast<%s(*)%s>(%sDynamicSharedMemory());%s" % (
            name, parts["type"].strip(), parts["dims"], NAMESPACE, lines)
    return ('static const char %s_key = 0; using %s_type = %s; auto& %s = *static_cast<%s_type*>('
            '%sSharedVariable(&%s_key, sizeof(%s_type), "%s"));%s') % (
                name, name, kind, name, name, NAMESPACE, name, name, name, lines)


def kernel_start(text, end):
    """Where the name of the kernel before <<< begins: an id, template arguments, ::."""
    at = len(text[:end].rstrip())
    if text[at - 1] == ">":
        depth = 0
        while at > 0:
            at -= 1
            depth += {">": 1, "<": -1}.get(text[at], 0)
            if depth == 0:
                break
    # Only the end of the text is searched, or it would take seconds for each launch.
    begin = max(0, at - MAX_NAME)
    name = re.search(r"(?:::\s*)?(?:\w+\s*::\s*)*(?:template\s+)?\w+\s*$", text[begin:at])
    return begin + name.start() if name else end


def closing(text, opened):
    depth = 0
    for at in range(opened, len(text)):
        if text[at] in OPEN:
            depth += 1
        elif text[at] in CLOSE:
            depth -= 1
            if depth == 0:
                return at
    return -1


def rewrite(text):
    # Nothing in a string counts; blanks of the same length keep positions.
    blank = STRING.sub(lambda match: '"' + "_" * (len(match[0]) - 2) + '"', text)
    edits = []  # (begin, end, replacement)
    for match in SHARED.finditer(blank):
        edits.append((match.start(), match.end(), shared_variable(text, match)))
    for match in re.finditer(r"<<<", blank):
        shape_end = blank.find(">>>", match.end())
        opened = shape_end + 3
        while shape_end >= 0 and blank[opened].isspace():
            opened += 1
        begin = kernel_start(blank, match.start())
        closed = closing(blank, opened) if shape_end >= 0 and blank[opened] == "(" else -1
        if closed < 0 or begin == match.start():
            fail(text, match.start(), "expected kernel<<<grid, block>>>(arguments)")
        kernel = text[begin:match.start()]
        name = " ".join(kernel.split()).replace('"', '\\"')
        comma = "," if blank[opened + 1:closed].strip() else ""
        edits.append((begin, opened + 1, '%sLaunch("%s", %sLaunchShape(%s), '
                      "::std::source_location::current(), [](const auto&... of_launch) { %s(of_launch...); }%s "
                      % (NAMESPACE, name, NAMESPACE, text[match.end():shape_end], kernel, comma)))
    for begin, end, replacement in sorted(edits, reverse=True):
        text = text[:begin] + replacement + text[end:]
    return text


if __name__ == "__main__":
    sys.stdout.write(rewrite(sys.stdin.read()))
