"""Reads the declarations of Skiff's builder headers.

The headers have one style: functions, option structs, enums and classes at the outermost level of a named namespace,
each under the comment that is its contract. `parse` returns what a header declares, and raises a DeclarationError with
file and line for anything else, so no declaration is ever lost in silence.
"""
import re
from dataclasses import dataclass, field
from typing import List, Optional


class DeclarationError(Exception):
    """What was found at which line of which header, and what was expected."""


@dataclass
class Field:
    """A parameter of a function, or a member of a struct."""

    type: str
    name: str  # empty for a parameter without a name
    default: Optional[str]  # the C++ expression; None: no default
    doc: str = ""


@dataclass
class Place:
    path: str
    line: int
    namespace: str  # "skiff::layers"; of a method: with its class

    def __str__(self):
        return f"{self.path}:{self.line}"


@dataclass
class Function:
    place: Place
    name: str
    result: str  # empty for a constructor
    parameters: List[Field]
    doc: str


@dataclass
class Enum:
    place: Place
    name: str
    values: List[str]


@dataclass
class Struct:
    place: Place
    name: str
    fields: List[Field]
    doc: str
    enums: List[Enum] = field(default_factory=list)  # defined inside
    # Members that are no fields: the struct can't be given field by field.
    others: List[str] = field(default_factory=list)


@dataclass
class Class:
    place: Place
    name: str
    base: str
    doc: str
    constructor: Optional[Function] = None
    methods: List[Function] = field(default_factory=list)  # public ones


@dataclass
class Header:
    path: str
    doc: str
    declarations: list = field(default_factory=list)


_NAMESPACE = re.compile(r"^namespace(?: ([\w:]+))? \{$")
_NAMESPACE_END = re.compile(r"^\}  // namespace(?: [\w:]+)?$")
_TYPE = r"(?:const )?[\w:]+(?:<.*>)?[&*]?"
_FUNCTION = re.compile(rf"^(?:virtual )?({_TYPE}) (\w+)\((.*)\)(?: const)?;$")
_CONSTRUCTOR = re.compile(r"^(?:explicit )?(\w+)\((.*)\);$")
_NAMED = re.compile(rf"^({_TYPE})(?: (\w+))?$")
_ENUM = re.compile(r"^enum class (\w+)(?: : \w+)? \{ (.*?),? \}(.*)$")
_STRUCT = re.compile(r"^struct (\w+) \{$")
_CLASS = re.compile(r"^class (\w+)(?: final)?(?: : public ([\w:]+))? \{$")
# Statements without anything to bind: aliases, constants, forward declarations.
_IGNORED = re.compile(r"^(?:using |inline constexpr |(?:class|struct) \w+;)")


def _split(text, separator=","):
    """The parts of a text between separators that no bracket encloses."""
    parts, depth, begin = [], 0, 0
    for i, char in enumerate(text):
        if char in "<({[":
            depth += 1
        elif char in ">)}]":
            depth -= 1
        elif char == separator and depth == 0:
            parts.append(text[begin:i].strip())
            begin = i + 1
    parts.append(text[begin:].strip())
    return [part for part in parts if part]


def _paragraphs(comment):
    """The text of comment lines: lines of a paragraph are joined, indented ones (examples) stay."""
    paragraphs = [""]
    for line in comment:
        text = line.strip()[2:]
        if not text.strip():
            paragraphs.append("")
        elif text.startswith("  ") or not paragraphs[-1]:
            paragraphs[-1] += ("\n" if paragraphs[-1] else "") + (text[1:].rstrip() if text.startswith("  ")
                                                                  else text.strip())
        elif paragraphs[-1].splitlines()[-1].startswith(" "):
            paragraphs.append(text.strip())
        else:
            paragraphs[-1] += " " + text.strip()
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


class _Parser:
    def __init__(self, path, text):
        self.path = path
        self.lines = text.splitlines()
        self.at = 0
        self.namespaces: List[str] = []
        self.header = Header(path, "")

    def fail(self, what, line=None):
        raise DeclarationError(f"{self.path}:{(line if line is not None else self.at) + 1}: {what}")

    def place(self, line):
        return Place(self.path, line + 1, "::".join(self.namespaces))

    def run(self):
        comment: List[str] = []
        doc = ""  # of the group of declarations, which no blank line parts
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith("//"):
                comment.append(line)
                self.at += 1
                continue
            if comment:
                doc, comment = _paragraphs(comment), []
            if not line:
                doc = ""
                self.at += 1
            elif line.startswith("#"):
                if line == "#pragma once":
                    self.header.doc = doc
                self.at += 1
            elif _NAMESPACE.match(line):
                self.namespaces.append(_NAMESPACE.match(line).group(1) or "")
                self.at += 1
            elif _NAMESPACE_END.match(line):
                self.namespaces.pop()
                self.at += 1
            else:
                self.declaration(doc)
        return self.header

    def declaration(self, doc):
        begin = self.at
        line = self.lines[begin]
        if _STRUCT.match(line):
            self.header.declarations.append(self.struct(_STRUCT.match(line).group(1), doc))
        elif _CLASS.match(line):
            self.header.declarations.append(self.klass(_CLASS.match(line), doc))
        elif line.startswith("enum class "):
            text, _ = self.statement()
            match = _ENUM.match(text)
            if not match or match.group(3) != ";":
                self.fail(f"found \"{text}\", expected an enum class", begin)
            self.header.declarations.append(self.enum(match, begin))
        else:
            text, _ = self.statement()
            if _IGNORED.match(text):
                return
            self.header.declarations.append(self.function(text, begin, doc))

    def statement(self):
        """Takes the lines up to a semicolon outside of brackets: (text, comments beside it)."""
        begin, text, beside = self.at, "", []
        while self.at < len(self.lines):
            code, slashes, comment = self.lines[self.at].partition("//")
            if slashes:
                beside.append(comment.strip())
            text = f"{text} {code.strip()}".strip()
            self.at += 1
            depth = sum(text.count(char) for char in "({[") - sum(text.count(char) for char in ")}]")
            if depth == 0 and text.endswith((";", "}")):
                return re.sub(r"\( ", "(", text), " ".join(beside)
        return self.fail("found no end of this statement", begin)

    def enum(self, match, line):
        names = [value.split("=")[0].strip() for value in _split(match.group(2))]
        return Enum(self.place(line), match.group(1), names)

    def function(self, text, line, doc):
        match = _FUNCTION.match(text)
        if not match:
            self.fail(f"found \"{text}\", expected a function", line)
        return Function(self.place(line), match.group(2), match.group(1), self.parameters(match.group(3), line), doc)

    def parameters(self, text, line):
        return [self.parameter(part, line) for part in _split(text)]

    def parameter(self, text, line):
        declared, equals, default = text.partition(" = ")
        match = _NAMED.match(declared)
        if not match:
            self.fail(f"found \"{text}\", expected a parameter", line)
        return Field(match.group(1), match.group(2) or "", default if equals else None)

    def members(self):
        """Yields (text, comment, line) of the statements of a body, up to its end."""
        begin = self.at
        self.at += 1
        comment: List[str] = []
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if self.lines[self.at] == "};":
                self.at += 1
                return
            if line.startswith("//"):
                comment.append(line)
                self.at += 1
            elif not line or line.endswith("public:") or line.endswith("private:") or line.endswith("protected:"):
                if line:
                    yield line, "", self.at
                comment = []
                self.at += 1
            else:
                first = self.at
                text, beside = self.statement()
                yield text, _paragraphs(comment) or beside, first
                comment = []
        self.fail("found no end of this body", begin)

    def struct(self, name, doc):
        struct = Struct(self.place(self.at), name, [], doc)
        for text, comment, line in self.members():
            enum = _ENUM.match(text)
            if enum:
                struct.enums.append(self.enum(enum, line))
                text = f"{enum.group(1)}{enum.group(3)}"
                if text == enum.group(1) + ";":
                    continue
            if not text.endswith(";") or (("(" in text) and not text.startswith("std::function<")):
                struct.others.append(f"{self.path}:{line + 1}: {text}")
                continue
            declared = self.parameter(text[:-1], line)
            if not declared.name:
                self.fail(f"found \"{text}\", expected a field", line)
            declared.doc = comment
            struct.fields.append(declared)
        return struct

    def klass(self, match, doc):
        result = Class(self.place(self.at), match.group(1), match.group(2) or "", doc)
        self.namespaces.append(result.name)
        is_public = False
        for text, comment, line in self.members():
            if text.endswith(":"):
                is_public = text == "public:"
            elif not is_public:
                continue
            elif _CONSTRUCTOR.match(text) and _CONSTRUCTOR.match(text).group(1) == result.name:
                parameters = self.parameters(_CONSTRUCTOR.match(text).group(2), line)
                result.constructor = Function(self.place(line), result.name, "", parameters, comment)
            elif _FUNCTION.match(text):
                result.methods.append(self.function(text, line, comment))
        self.namespaces.pop()
        return result


def parse(path, text) -> Header:
    """What the header with this text declares."""
    return _Parser(path, text).run()


def parse_files(paths) -> List[Header]:
    """The headers at these paths."""
    headers = []
    for path in paths:
        with open(path, encoding="utf-8") as stream:
            headers.append(parse(path, stream.read()))
    return headers
