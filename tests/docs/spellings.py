"""Writes the C++ of docs/coming_from_pytorch.md as tests.

usage: spellings.py PAGE HEADER... > spellings.inc

A row of its tables is | `PyTorch's name` | Skiff | differences |. Of the code between backticks,

  an expression in the column "Skiff", such as layers::Relu(x), becomes a test that builds it,
  a qualified name, such as layers::Relu, becomes a using-declaration, so it must exist,
  a name alone, such as Relu, must be one of PyTorch's rows or declared in a header,
  an option, such as .stride = 1, must be a field of a struct in a header.

A mistake ends the program with the line of the page.
"""
import re
import sys

_QUALIFIED = re.compile(r"\b((?:layers|optimizer|learning_rate|initializer|training)::(\w+))")
_ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) ?\|$")
_HEAD = re.compile(r"^\| `torch\.[\w.]+` \| Skiff \|")


def declared(headers):
    """The names of functions and types, and those of fields."""
    names, fields = set(), set()
    for path in headers:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
        names.update(re.findall(r"^(?:class|struct|enum class) (\w+)", text, re.M))
        names.update(re.findall(r"^[\w:<>&*, ]+ (\w+)\(", text, re.M))
        fields.update(re.findall(r"^ +[\w:<>, ]+ (\w+)(?: = [^;]*)?;", text, re.M))
    return names, fields


def rows(page):
    """Yields (line, name, Skiff, differences) of the tables of equivalents."""
    is_table = False
    for number, line in enumerate(page.splitlines(), 1):
        if _HEAD.match(line):
            is_table = True
        elif not line.startswith("|"):
            is_table = False
        elif is_table and not line.startswith("|---"):
            match = _ROW.match(line)
            if not match:
                raise ValueError(f"line {number}: found \"{line}\", expected three columns")
            yield number, *match.groups()


def code(text):
    return re.findall(r"`([^`]+)`", text)


def check_words(number, span, known, fields):
    """Names and options of code that isn't built, unless it is an argument of PyTorch's, such as affine=True."""
    if re.match(r"\w+=\S", span):
        return
    for name in re.findall(r"(?<![\w:.])([A-Z]\w*[a-z]\w*)", span):
        if name not in known and name != "Variable":
            raise ValueError(f"line {number}: found {name}, expected a row or a name of Skiff's")
    for name in re.findall(r"(?<![\w.])\.(\w+)", span):
        if name not in fields:
            raise ValueError(f"line {number}: found the option {name}, expected a field of Skiff's")


def tests(page, headers):
    """The lines of the .inc file."""
    names, fields = declared(headers)
    table = list(rows(page))
    known = names | {name for _, name, _, _ in table}
    lines = []
    for number, name, skiff, differences in table:
        spans = code(skiff)
        built = [span for span in spans if _QUALIFIED.search(span) and "(" in span]
        if not skiff.strip():
            raise ValueError(f"line {number}: {name} has no spelling, expected code or \"missing\"")
        for i, span in enumerate(built):
            lines += [f"// Line {number}.", f"TEST_F(ComingFromPyTorch, Builds{name}{i or ''}) {{",
                      f"  Expect({span});", "}", ""]
        for span in code(differences) + [span for span in spans if span not in built]:
            check_words(number, span, known, fields)
    for qualified in sorted({match[0] for match in _QUALIFIED.findall(page)}):
        space, _, name = qualified.partition("::")
        lines.append(f"namespace has_{space}_{name} {{ using {qualified}; }}")
    return lines


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        page = stream.read()
    try:
        print("\n".join(tests(page, sys.argv[2:])))
    except ValueError as error:
        sys.exit(f"{sys.argv[1]}: {error}")


if __name__ == "__main__":
    main()
