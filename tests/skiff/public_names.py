#!/usr/bin/env python3
"""Lists the names that a program gets from a header of skiff, one a line, with their namespaces. Of other headers than
skiff.h only those that skiff.h doesn't give.

usage: public_names.py skiff.h > tests/skiff/public_names.txt, or
       public_names.py HEADER > tests/skiff/public_NAME_names.txt, in the root of the source tree
"""
import re
import subprocess
import sys

COMPILER = "g++"
_TOKEN = re.compile(r"""
    \#[^\n]* | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | [A-Za-z_]\w* | \d[\w.']*
    | :: | -> | <=> | && | \|\| | << | [<>=!+\-*/&|^%]= | \S""", re.VERBOSE)
_LINE = re.compile(r'# \d+ "([^"]*)"((?: \d)*)')
_CLOSING = {"(": ")", "{": "}", "[": "]"}


class Struct:
    """A struct without constructors."""

    def __init__(self, name, members):
        self.name = name
        self.members = members


class Declarations:
    """What preprocessed text declares outside of the headers of the system."""

    def __init__(self, text):
        self.names = set()
        self.structs = []
        self._tokens = [*_own_tokens(text), ";"]
        self._at = 0
        while self._at < len(self._tokens):
            self._declaration([])

    def _peek(self, ahead=0):
        return self._tokens[self._at + ahead]

    def _next(self):
        self._at += 1
        return self._tokens[self._at - 1]

    def _add(self, scope, name):
        # A user finds operators by their operands.
        if scope and name and not name.startswith("operator"):
            self.names.add("::".join([*scope, name]))

    def _group(self):
        """Passes over a group in brackets and returns its tokens."""
        start, depth = self._at, 0
        while True:
            token = self._next()
            depth += token in _CLOSING
            depth -= token in _CLOSING.values()
            if depth == 0:
                return self._tokens[start + 1:self._at - 1]

    def _angles(self):
        depth = 0
        while True:
            if self._peek() in _CLOSING:
                self._group()
                continue
            token = self._next()
            depth += (token == "<") - (token == ">")
            if depth == 0:
                return

    def _to_semicolon(self):
        """Passes over the next semicolon and returns the words before it, without those in brackets."""
        words = []
        while self._peek() != ";":
            if self._peek() in _CLOSING:
                self._group()
            else:
                words.append(self._next())
        self._next()
        return words

    def _block(self, scope):
        self._next()
        while self._peek() != "}":
            self._declaration(scope)
        self._next()

    def _declaration(self, scope):
        if self._peek() == ";":
            self._next()
        elif self._peek() == "extern" and self._peek(1).startswith('"') and self._peek(2) == "{":
            self._at += 2
            self._block(scope)
        elif self._peek() == "namespace" or [self._peek(), self._peek(1)] == ["inline", "namespace"]:
            self._namespace(scope)
        elif self._peek() in ("static_assert", "_Static_assert"):
            self._to_semicolon()
        else:
            self._entity(scope)

    def _namespace(self, scope):
        while self._next() != "namespace":
            pass
        parts = []
        while self._peek() not in ("{", "="):
            parts.append(self._next())
        if self._peek() == "=":
            self._add(scope, parts[0])
            self._to_semicolon()
        else:
            self._block([*scope, *(part for part in parts if part != "::")])

    def _entity(self, scope):
        while self._peek() == "template":
            self._next()
            if self._peek() == "<":
                self._angles()
            if self._peek() == "requires":
                self._requirement()
        kind = self._peek()
        if kind == "using":
            words = self._to_semicolon()[1:]
            if words[0] == "namespace":
                self._add(scope, " ".join(words))
            else:
                self._add(scope, words[0] if "=" in words else words[-1])
        elif kind == "typedef":
            self._add(scope, self._to_semicolon()[-1])
        elif kind == "concept":
            self._add(scope, self._to_semicolon()[1])
        elif not (kind in ("class", "struct", "union", "enum") and self._type(scope, kind)):
            self._function_or_variable(scope)

    def _requirement(self):
        self._next()
        while True:
            if self._peek() == "(":
                self._group()
            else:
                self._next()
                if self._peek() == "<":
                    self._angles()
            if self._peek() not in ("&&", "||", "::"):
                return
            self._next()

    def _type(self, scope, kind):
        """Reads a definition or declaration of a type. Returns False if it is something else, such as a function."""
        start = self._at
        self._next()
        if self._peek() in ("class", "struct"):
            self._next()
        while self._peek() == "[":
            self._group()
        name = self._next()
        is_qualified = False
        while self._peek() in ("<", "::"):
            if self._peek() == "<":
                self._angles()
            else:
                is_qualified = True
                self._at += 2
        if self._peek() not in ("{", ":", ";", "final"):
            self._at = start
            return False
        if not is_qualified:
            self._add(scope, name)
        while self._peek() not in ("{", ";"):
            self._next()
        if self._peek() == "{":
            body = self._group()
            members = _members(body)
            if kind == "struct" and scope and members and not _has_constructor(name, body):
                self.structs.append(Struct("::".join([*scope, name]), members))
        self._to_semicolon()
        return True

    def _function_or_variable(self, scope):
        name, before, word = None, None, None
        while True:
            token = self._peek()
            if token == ";":
                self._next()
                break
            if token == "operator":
                return self._operator()
            if token == "<":
                self._angles()
            elif token in _CLOSING or token == "=":
                if name is None and word not in ("alignas", "decltype", "explicit", "noexcept"):
                    name = "" if before == "::" else word
                if token == "=":
                    self._to_semicolon()
                    break
                self._group()
                if token == "{":
                    break
            else:
                if re.match(r"[A-Za-z_]", token) and name is None:
                    before, word = self._tokens[self._at - 1], token
                self._next()
        self._add(scope, word if name is None and before != "::" else name)

    def _operator(self):
        while self._peek() != "(":
            self._next()
        if [self._peek(), self._peek(1)] == ["(", ")"] and self._peek(2) == "(":
            self._at += 2
        while self._peek() not in (";", "{"):
            if self._peek() in _CLOSING:
                self._group()
            else:
                self._next()
        if self._peek() == "{":
            self._group()
        else:
            self._next()


def _own_tokens(text):
    is_system = False
    for match in _TOKEN.finditer(text):
        token = match.group()
        line = _LINE.match(token)
        if line:
            is_system = "3" in line.group(2).split() or line.group(1).startswith("<")
        elif not is_system and not token.startswith("#"):
            yield token


def _statements(body):
    """The statements of a struct, without what is in brackets."""
    depth, statement = 0, []
    for token in body:
        depth -= token in _CLOSING.values()
        if depth == 0 and token == ";":
            yield statement
            statement = []
        elif depth == 0:
            statement.append(token)
        depth += token in _CLOSING
        if depth == 0 and token == "}" and "(" in statement:
            statement = []


def _without_angles(tokens):
    depth = 0
    for token in tokens:
        depth -= token == ">"
        if depth == 0 and token not in "<>":
            yield token
        depth += token == "<"


def _members(body):
    """The names of the data members."""
    members = []
    for statement in _statements(body):
        if not statement or statement[0] in ("using", "friend", "static", "struct", "class", "template"):
            continue
        head = [*_without_angles(statement[:statement.index("=")] if "=" in statement else statement)]
        if "(" not in head and (statement[0] != "enum" or head[-1] != "}"):
            members.append(head[-1])
    return members


def _has_constructor(name, body):
    return any(first == name and second == "(" for first, second in zip(body, body[1:]))


def declarations(root, header):
    """What a header of skiff declares."""
    command = [COMPILER, "-std=c++20", "-E", "-I", root, "-x", "c++", f"{root}/skiff/{header}"]
    return Declarations(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout)


def names(root, header):
    """The names that a header gives; of others than skiff.h those that skiff.h doesn't give."""
    found = declarations(root, header).names
    return found if header == "skiff.h" else found - declarations(root, "skiff.h").names


if __name__ == "__main__":
    print("\n".join(sorted(names(".", sys.argv[1]))))
