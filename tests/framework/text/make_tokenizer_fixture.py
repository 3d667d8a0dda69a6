"""Makes tokenizer_fixture.json anew: hard strings with the words and tokens that BERT cuts them into.

The expected values are those of the package `tokenizers`, an implementation that shares nothing with
the one under test:

    pip install tokenizers
    python3 make_tokenizer_fixture.py

Strings are bytes in hexadecimal, since some are no valid UTF-8. The random ones have only characters
whose category has been the same since Unicode 3.2, so that no version of the tables matters.
"""
import json
import os
import random
import unicodedata

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

FOLDER = os.path.dirname(os.path.abspath(__file__))
VOCABULARY = "tokenizer_vocabulary.txt"
FIXTURE = "tokenizer_fixture.json"
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

HARD = [
    "", " ", "\t\n\r\x0b\x0c ", "a", "The quick brown fox jumps over the lazy dog.",
    "Hello,World!", "don't stop", "it's 3.14, or $5.00 (50%)?", "a--b...c", "`~!@#$%^&*()-_=+[]{}\\|;:'\",<.>/?",
    "running runner unaffable unwanted playing", "RUNNING Runner UNAFFABLE",
    # accents, composed and decomposed
    "café naïve Ångström", "cafe\u0301 nai\u0308ve A\u030angstro\u0308m", "ÀÉÎÕÜ çñ", "a\u0300\u0301\u0302\u0316b",
    "\u0301a", "e\u0301\u200d\u0301", "Việt Nam tiếng Việt", "ﬁne ﬂow", "ŀ ǆ ĳ", "Ø ł đ",
    # case
    "İstanbul ISPARTA ısırgan", "Straße STRASSE ẞ", "ΑΣ ὈΔΥΣΣΕΎΣ σς", "Ǆ ǅ ǆ", "K Å Ω", "ϴ θ",
    # ideographs, kana, hangul
    "你好世界", "hello你好world", "㐀䶵 一鿿 豈 丽 𠀀𪛖 𫝀", "カタカナ ひらがな ガ か\u3099", "한국어 각", "漢字かな交じり文。",
    "「你好」，世界！", "中文abc中文123",
    # full width
    "ＡＢＣ ａｂｃ １２３ ！？", "\u3000全角　空白\u3000",
    # white space
    "a\u00a0b\u2003c\u2028d\u2029e\u202ff\u205fg\u3000h\u1680i", "a\u0085b", "a\u200bb\u200cc\u200dd\u2060e\ufefff",
    "a\u00adb", "  many   spaces  ",
    # control, format, private, unassigned and non-characters
    "a\x00b\x01c\x1fd\x7fe\x80f\x9fg", "a\ufffdb\ufffd", "\ufffd", "a\ue000b\U000f0000c", "a\u0378b", "a\uffffb\ufdd0c",
    "\u202eabc\u202c \u2066x\u2069",
    # right to left
    "שָׁלוֹם עולם", "مَرْحَبًا بالعالم؟", "abc שלום 123",
    # emoji
    "😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪 ❤️ 1️⃣", "a😀b", "☃☂™©®",
    # Indic, Thai, Tibetan, Ethiopic, Georgian, Cherokee
    "हिन्दी में।", "ภาษาไทย", "བོད་སྐད།", "አማርኛ፡ሰላም።", "ᲐᲑ აბ Ⴀ", "Ꭰ ꭰ", "தமிழ்", "বাংলা",
    # punctuation of many kinds
    "“quoted” ‘single’ «guillemets» – — … ¿qué? ¡sí! § ¶ • ‣ ※ ⁂", "a‿b⁀c·d・e", "+<=>|~^`¬±×÷°", "€£¥₹", "№ ½ ² ³ Ⅷ",
    "\u037e\u0387\u1fef", "⸺⸻ 〈〉【】",
    # digits of other scripts
    "٣٤٥ ३४५ ３４５", "𝐀𝐁𝐂 𝟏𝟐𝟑",
    # long words: the limit is 100 characters, not bytes
    "a" * 99, "a" * 100, "a" * 101, "é" * 100, "é" * 101, "e\u0301" * 100, "e\u0301" * 101, "ж" * 100, "ж" * 101,
    "-" * 150, "你" * 150, "😀" * 101, "x" + "a" * 98 + "Ж",
    # special tokens
    "[CLS] a [MASK] b [SEP]", "a[MASK]b", "[mask] [Mask]", "[[MASK]]", "[MASK", "MASK]", "[ MASK ]", "[PAD][UNK]", "##a ## #",
    "[unused1]", "[MASK]é[MASK]",
    # unknown pieces
    "a¤b", "¤", "zzz¤", "running¤",
]
INVALID = [
    b"\xff", b"a\xffb", b"\xc3", b"a\xc3 b", b"\xc3\x28", b"\xc0\xaf", b"\xe2\x82", b"\xe2\x28\xa1", b"a\xed\xa0\x80b",
    b"\xed\xa0\xbd\xed\xb8\x80", b"\xf0\x9f\x98", b"\xf0\x28\x8c\xbc", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80",
    b"\xfe\xfe\xff\xff", b"caf\xe9 na\xefve", b"\x80\x81\x82", b"ok\xe4\xbd\xa0\xe5\xa5", b"\xef\xbf\xbe\xef\xbf\xbf",
    b"[MA\xffSK]", b"un\xffaffable",
]
RANDOM_STRINGS = 300


def is_settled(character):
    now = unicodedata.category(character)
    return now == unicodedata.ucd_3_2_0.category(character) and now not in ("Cn", "Cs")


def random_strings():
    draw = random.Random(20)
    blocks = [(0x20, 0x7F), (0xA0, 0x250), (0x2B0, 0x700), (0x900, 0xE80), (0x1E00, 0x2100), (0x2100, 0x2800),
              (0x3000, 0x3400), (0x4E00, 0x5000), (0xAC00, 0xAD00), (0xF900, 0xFB00), (0xFE00, 0x10000), (0x1D100, 0x1D800)]
    strings = []
    while len(strings) < RANDOM_STRINGS:
        first, last = draw.choice(blocks)
        pool = range(first, last) if draw.random() < 0.5 else range(0x21, 0x7F)
        characters = []
        for _ in range(draw.randint(1, 12)):
            low, high = draw.choice(blocks) if draw.random() < 0.3 else (pool.start, pool.stop)
            character = chr(draw.randrange(low, high))
            if is_settled(character):
                characters.append(character)
            if draw.random() < 0.15:
                characters.append(" ")
        if characters:
            strings.append("".join(characters))
    return strings


def words_of(text, lower_case, strip_accents):
    normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=strip_accents,
                                lowercase=lower_case)
    return [word for word, _ in BertPreTokenizer().pre_tokenize_str(normalizer.normalize_str(text))]


def tokenizer_of(lower_case, strip_accents):
    with open(os.path.join(FOLDER, VOCABULARY), encoding="utf-8") as file:
        ids = {token: number for number, token in enumerate(file.read().split("\n")[:-1])}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(clean_text=True, handle_chinese_chars=True, strip_accents=strip_accents,
                                          lowercase=lower_case)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    return tokenizer


def main():
    texts = [text.encode() for text in HARD] + INVALID + [text.encode() for text in random_strings()]
    cases = []
    for lower_case, strip_accents in [(True, None), (False, None), (True, False), (False, True)]:
        tokenizer = tokenizer_of(lower_case, strip_accents)
        # Only the default needs the long list.
        for raw in texts if (lower_case, strip_accents) == (True, None) else texts[:len(HARD)]:
            text = raw.decode("utf-8", errors="replace")
            cases.append({"bytes": raw.hex(), "lower_case": lower_case, "strip_accents": strip_accents,
                          "words": words_of(text, lower_case, strip_accents), "tokens": tokenizer.encode(text).tokens})
    with open(os.path.join(FOLDER, FIXTURE), "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n")
    print("%d cases" % len(cases))


if __name__ == "__main__":
    main()
