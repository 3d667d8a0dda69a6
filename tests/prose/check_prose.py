"""Checks the sentences of the comments in headers: they name things instead of pointing at them.

A sentence with three or more pointing words ("those of what others keep") makes the reader look for three nouns.
Reported as well: phrases that plain words replace. A sentence ends at a period, a question or exclamation mark, a
colon or a semicolon.

usage: check_prose.py ROOT            prints the mistakes; fails if there are any
       check_prose.py --shares ROOT   prints by package the share of sentences with chains of pronouns
"""
import os
import re
import sys

from tests.layers.check_layers import read_tree

HEADERS = (".h", ".cuh")

# No sentence has MOST_POINTERS or more of these words.
POINTERS = frozenset("those that what one ones others these them".split())
MOST_POINTERS = 3

PHRASES = {
    "of the moment": 'say "current" or which run, step or row is meant',
    "the very": 'say "exact" or "the same"',
    "but for": 'say "except"',
}

# For --shares: a chain is two of these words within CHAIN words. "which" is left out: it mostly follows its noun.
PRONOUNS = frozenset("it its they their theirs them this these those what one ones others who whose".split())
CHAIN = 5
# "that" is a pronoun after these words and at the start of a sentence. After a noun, "that" begins a relative clause,
# and after a verb a statement.
BEFORE_THAT = frozenset("""after all also and as at because before but by do does for from if in is are like no not of
on only or so such than then to was when with""".split())
SHORTEST = 4  # words; less is a caption, no sentence

_TOKEN = re.compile(
    r"""(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)"""
    r"""|R"(?P<mark>[^\s()\\]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'""", re.DOTALL)
_SENTENCE = re.compile(r"(?:[^.!?:;]|[.!?:;](?=\S))+[.!?:;]?")


def comments_of(text):
    """[[(line, words of the line)]]: the comments of a source, each as its lines without their marks.

    Lines with nothing but a comment are one comment if they follow each other. A comment behind code goes on in the
    lines below that have a comment alone, at its column. An empty line in a comment ends it.
    """
    comments = []
    last_line, last_column = -1, -1  # of the comment that may go on
    for token in _TOKEN.finditer(text):
        mark = token.group("line") or token.group("block")
        if mark is None:
            continue
        start = token.start()
        number = text.count("\n", 0, start) + 1
        if token.group("block"):
            comments.append([(number + i, line.strip(" */")) for i, line in enumerate(mark.split("\n"))])
            last_line = -1
            continue
        line_start = text.rfind("\n", 0, start) + 1
        column = start - line_start
        words = mark.lstrip("/").strip()
        alone = not text[line_start:start].strip()
        if not (alone and last_line == number - 1 and last_column == column):
            comments.append([])
        if words:
            comments[-1].append((number, words))
        last_line, last_column = (number, column) if words else (-1, -1)
    return [comment for comment in comments if comment]


def sentences_of(text):
    """[(line, sentence)]: the sentences of the comments of a source, with the lines where they begin."""
    found = []
    for comment in comments_of(text):
        joined, starts = "", []
        for number, words in comment:
            starts.append((len(joined), number))
            joined += words + " "
        for match in _SENTENCE.finditer(joined):
            sentence = match.group().strip()
            begin = match.end() - len(match.group().lstrip())
            if sentence:
                found.append((max(number for start, number in starts if start <= begin), sentence))
    return found


def words_of(sentence):
    return re.findall(r"[a-z']+", sentence.lower())


def check(sources):
    """The mistakes in the comments of the headers among sources ({path: text}), as messages."""
    mistakes = []
    for path in sorted(sources):
        if not path.endswith(HEADERS):
            continue
        for line, sentence in sentences_of(sources[path]):
            words = words_of(sentence)
            pointers = [word for word in words if word in POINTERS]
            if len(pointers) >= MOST_POINTERS:
                mistakes.append('%s:%d: "%s" has %s: say the noun' % (path, line, sentence, ", ".join(pointers)))
            spaced = " %s " % " ".join(words)
            for phrase, advice in PHRASES.items():
                if " %s " % phrase in spaced:
                    mistakes.append('%s:%d: "%s" has "%s": %s' % (path, line, sentence, phrase, advice))
    return mistakes


def has_chain(sentence):
    """Whether the sentence has two pronouns within CHAIN words."""
    words = words_of(sentence)
    places = [i for i, word in enumerate(words)
              if word in PRONOUNS or (word == "that" and (i == 0 or words[i - 1] in BEFORE_THAT))]
    return any(later - earlier < CHAIN for earlier, later in zip(places, places[1:]))


def package_of(path):
    """The folder that the shares are printed for: two levels, or one where the files are in it."""
    return "/".join(path.split("/")[:-1][:2])


def shares(sources):
    """[(package, sentences with a chain, sentences)] of the headers among sources ({path: text})."""
    counts = {}
    for path in sources:
        if path.endswith(HEADERS):
            count = counts.setdefault(package_of(path), [0, 0])
            for _, sentence in sentences_of(sources[path]):
                if len(words_of(sentence)) >= SHORTEST:
                    count[0] += has_chain(sentence)
                    count[1] += 1
    return [(package, chains, total) for package, (chains, total) in sorted(counts.items())]


def main():
    arguments = sys.argv[1:]
    prints_shares = arguments[:1] == ["--shares"]
    if len(arguments) != 1 + prints_shares:
        sys.exit(__doc__)
    sources = read_tree(arguments[-1])
    if prints_shares:
        for package, chains, total in shares(sources):
            print("%-24s %5.1f %%  %4d of %5d" % (package, 100 * chains / max(total, 1), chains, total))
        return
    mistakes = check(sources)
    print("\n".join(mistakes) if mistakes else "prose: ok")
    sys.exit(1 if mistakes else 0)


if __name__ == "__main__":
    main()
