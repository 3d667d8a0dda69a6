"""Runs the programs of models/seq2seq as a user does: trains, resumes, translates, makes mistakes."""
import glob
import gzip
import json
import os
import random
import re
import shutil
import subprocess
import unittest
import zlib
from xml.etree import ElementTree

from tests.models.common.folder import Folder

QUICK = ("--threads=1", "--tokens=words", "--embedding=16", "--hidden=32", "--batch_size=16", "--learning_rate=5e-3")
WORDS = {"der": "the", "ein": "a", "Hund": "dog", "Katze": "cat", "Vogel": "bird", "sieht": "sees", "jagt": "hunts",
         "groß": "big", "klein": "small", "und": "and"}


def run(name, *arguments, text=None):
    command = [os.path.abspath("models/seq2seq/" + name), *arguments]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def as_of_an_earlier_version(output_dir):
    """Makes the states of checkpoints such as have the names of files, and not their contents."""
    for state_path in glob.glob(os.path.join(output_dir, "checkpoints", "*", "state.json")):
        with open(state_path) as stream:
            state = json.load(stream)
        state["text"] = {name: text for name, text in state["text"].items() if "(contents" not in name}
        for name in [name for name in state["text"] if name.startswith("given.")]:
            state["text"][name.replace("given", "configuration")] = state["text"].pop(name)
        text = json.dumps(state).encode()
        with open(state_path, "wb") as stream:
            stream.write(text)
        manifest_path = os.path.join(os.path.dirname(state_path), "manifest.json")
        with open(manifest_path) as stream:
            manifest = json.load(stream)["manifest"]
        crc32 = lambda text: "%08x" % zlib.crc32(text)
        entry = next(entry for entry in manifest["files"] if entry["name"] == "state.json")
        entry.update(bytes=len(text), crc32=crc32(text))
        compact = json.dumps(manifest, separators=(",", ":"), sort_keys=True).encode()
        with open(manifest_path, "w") as stream:
            json.dump({"manifest": manifest, "crc32": crc32(compact)}, stream)


class Programs(Folder):
    def done(self, name, *arguments, text=None):
        """The output of a program that has to succeed."""
        result = run(name, *arguments, text=text)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, b"")
        return result.stdout.decode()

    def refused(self, name, *arguments):
        """The error of a program that has to fail."""
        result = run(name, *arguments)
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertTrue(result.stderr.startswith(b"error: "), result.stderr)
        return result.stderr.decode()[len("error: "):].rstrip("\n")


class TrainedOnPairs(Programs):
    """A model of pairs of sentences, trained with QUICK and with the flags FLAGS."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        choose = random.Random(3)
        sources = [choose.choices(list(WORDS), k=choose.randint(1, 7)) for _ in range(900)]
        cls.lines = [(" ".join(words), " ".join(WORDS[word] for word in words)) for words in sources]
        cls.table = cls.write("pairs.tsv.gz", "".join(source + "\t" + target + "\n" for source, target in cls.lines))
        cls.flags = ("--data=" + cls.table, "--output_dir=" + cls.at("run"), *QUICK, *cls.FLAGS)
        cls.model = "--model=" + cls.at("run/model")
        result = run("train", *cls.flags)
        assert result.returncode == 0, result.stderr
        cls.weights = re.search(rb"^weights ([0-9a-f]{16})$", result.stdout, re.MULTILINE)[1]


class Trained(TrainedOnPairs):
    """A model that translates word by word, trained with averaged weights."""
    FLAGS = ("--epochs=7", "--model_average=ema", "--ema_decay=0.9")

    def test_evaluates_with_and_without_averages(self):
        for model in (self.model, "--model=" + self.at("run/unaveraged_model")):
            output = self.done("translate", model, "--evaluate=" + self.table)
            found = re.fullmatch(r"(\d+) of 900 translations are exactly as given \(\d+\.\d\d %\)\n"
                                 r"BLEU (\d+\.\d\d) of words \(precisions [\d./]+, brevity penalty [01]\.\d{3}, \d+ tokens, "
                                 r"\d+ expected\)\n", output)
            self.assertIsNotNone(found, output)
            self.assertGreater(int(found[1]), 850)
            self.assertGreater(float(found[2]), 95)

    def test_evaluates_what_is_wrong(self):
        # Half of the references have another word, so half of the unigrams don't fit.
        table = self.write("wrong.tsv", "".join("%s\tx%s\n" % (word, word) for word in WORDS) + "".join(
            "%s\t%s\n" % pair for pair in WORDS.items()))
        self.assertIn("10 of 20 translations are exactly as given (50.00 %)\nBLEU 0.00 of words (precisions 50.0/0.0/0.0/0.0, "
                      "brevity penalty 1.000, 20 tokens, 20 expected)\n",
                      self.done("translate", self.model, "--evaluate=" + table))

    def test_draws_the_attention(self):
        picture = self.at("attention.svg")
        self.assertEqual(self.done("translate", self.model, "--attention=" + picture, "--batch_size=2",
                                   text="der Hund\n\nein <b> & Vogel\n".encode()).splitlines()[:2], ["the dog", ""])
        svg = "{http://www.w3.org/2000/svg}"
        tables = ElementTree.parse(picture).getroot().findall(svg + "g")
        self.assertEqual(len(tables), 2)
        labels = [element.text for element in tables[0].findall(svg + "text")]
        self.assertEqual(labels, ["the dog", "der", "Hund", "the", "dog", "</s>"])
        weights = [float(cell.get("fill-opacity")) for cell in tables[0].iter(svg + "rect")]
        self.assertEqual(len(weights), 6)
        self.assertGreater(weights[0], weights[1])
        self.assertGreater(weights[3], weights[2])

    def test_prints_the_attention(self):
        self.assertRegex(self.done("translate", self.model, "--attention=text", "--text=der Hund"),
                         r'\Athe dog\n  the  from token 0, "der" \(\d+ %\)\n  dog  from token 1, "Hund" \(\d+ %\)\n'
                         r'  </s>  from token ')

    def test_translates_whatever_it_is_given(self):
        # Blank lines, what isn't UTF-8, unknown words, a very long line, and one without an end.
        output = self.done("translate", self.model, "--most_tokens=20",
                           text=b"Hund\n\n \t\n\xff\xfe\nquux\n" + b"der Hund " * 2000 + b"\r\nKatze").split("\n")
        self.assertEqual(len(output), 8)
        self.assertEqual([output[i] for i in (0, 1, 2, 6, 7)], ["dog", "", "", "cat", ""])
        self.assertEqual(self.done("translate", self.model, text=b""), "")

    def test_translates_with_a_beam(self):
        beam = ("--beam=5", "--length_penalty=0.6")
        self.assertEqual(self.done("translate", self.model, *beam, text=b"der Hund\n\nein Vogel jagt und sieht\nKatze\n"),
                         "the dog\n\na bird hunts and sees\ncat\n")
        self.assertRegex(self.done("translate", self.model, *beam, "--text=der Hund", "--attention=text"),
                         r'\Athe dog\n  the  from token 0, "der" \(\d+ %\)\n  dog  from token 1, "Hund" \(\d+ %\)\n')
        exact = re.match(r"(\d+) of 900 ", self.done("translate", self.model, *beam, "--evaluate=" + self.table))
        self.assertGreater(int(exact[1]), 850)

    def test_a_beam_of_a_model_from_before_there_were_beams(self):
        old = self.at("old_model")
        shutil.copytree(self.at("run/model"), old)
        self.addCleanup(shutil.rmtree, old)
        network = os.path.join(old, "network.json")
        os.remove(network)
        self.assertEqual(self.done("translate", "--model=" + old, "--text=der Hund"), "the dog\n")
        self.assertEqual(self.refused("translate", "--model=" + old, "--text=der Hund", "--beam=2"),
                         network + ": no such file, but a beam of 2 needs it (models that earlier versions trained don't "
                         "have it)")

    def test_another_network_does_not_resume(self):
        for flag in ("--cell=lstm", "--layers=2", "--bidirectional=false", "--attention=luong", "--tied_embeddings",
                     "--label_smoothing=0.1", "--hidden=8"):
            self.assertIn("the checkpoint was made with " + flag[2:].partition("=")[0],
                          self.refused("train", *self.flags, flag, "--resume"))

    def test_resumes_with_the_other_decoder(self):
        other = self.at("other_run")
        shutil.copytree(self.at("run"), other)
        self.addCleanup(shutil.rmtree, other)
        checkpoints = os.path.join(other, "checkpoints")
        shutil.rmtree(os.path.join(checkpoints, max(os.listdir(checkpoints))))
        output = self.done("train", *self.flags, "--output_dir=" + other, "--decoder=dynamic_rnn", "--resume")
        losses = [float(loss) for loss in re.findall(r"epoch \d/7  loss ([\d.]+) ", output)]
        self.assertTrue(losses, output)
        # That of a model which was trained before.
        self.assertLess(losses[0], 0.5)

    def test_a_training_that_stops_inside_an_epoch_ends_with_the_same_weights(self):
        flags = (*self.flags, "--output_dir=" + self.at("stopped_run"))
        # An epoch has 51 steps.
        self.assertIn("stopped and saved", run("train", *flags, "--stop_after=70").stdout.decode())
        result = run("train", *flags, "--resume")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"\nweights " + self.weights + b"\n", result.stdout)

    def test_files_of_another_model(self):
        other = self.at("other_model")
        shutil.copytree(self.at("run/model"), other)
        self.addCleanup(shutil.rmtree, other)
        vocabulary = os.path.join(other, "source_vocabulary.txt")
        self.write(vocabulary, "words\n<s>\n</s>\n<unk>\nder\n")
        self.assertIn('the model\'s "source.table" has 13 tokens, the vocabulary has 4',
                      self.refused("translate", "--model=" + other, "--text=a"))
        with open(os.path.join(self.at("run/model"), "source_vocabulary.txt"), encoding="utf-8") as stream:
            self.write(vocabulary, stream.read().replace("\nder\n", "\ndas\n"))
        self.assertIn(other + ": the vocabularies are those of another model",
                      self.refused("translate", "--model=" + other, "--text=a"))
        os.remove(vocabulary)
        self.assertIn(vocabulary, self.refused("translate", "--model=" + other, "--text=a"))

    def test_mistakes_in_translate(self):
        self.assertEqual(self.refused("translate", self.model, "--text=a", "--attention=picture.png"),
                         "--attention=picture.png: expected text, or a file whose name ends in .svg")
        self.assertEqual(self.refused("translate", self.model, "--evaluate=" + self.table, "--attention=text"),
                         "--attention=text with --evaluate=" + self.table + ": expected one of them")
        self.assertIn("no_such_model", self.refused("translate", "--model=" + self.at("no_such_model")))
        self.assertIn("beam search: width = 0, expected at least 1", self.refused("translate", self.model, "--beam=0"))
        self.assertIn("length_penalty = -1, expected a number from 0 to 10",
                      self.refused("translate", self.model, "--beam=2", "--length_penalty=-1"))
        self.assertEqual(self.refused("translate", self.model, "--length_penalty=0.6"),
                         "--length_penalty=0.6 with --beam=1: expected a --beam of at least 2")
        self.assertIn("--batch_size=0", self.refused("translate", self.model, "--batch_size=0"))


class TrainedOnPieces(TrainedOnPairs):
    """A model of pieces of words."""
    FLAGS = ("--tokens=bpe", "--vocabulary_size=40", "--epochs=10")

    def test_translates_into_words(self):
        self.assertEqual(self.done("translate", self.model, text=b"der  Hund\n\n\tein Vogel\n"), "the dog\n\na bird\n")

    def test_evaluates_words(self):
        output = self.done("translate", self.model, "--evaluate=" + self.table)
        found = re.match(r"(\d+) of 900 .*\nBLEU (\d+\.\d\d) of words \(.* tokens, (\d+) expected\)\n", output)
        self.assertIsNotNone(found, output)
        self.assertGreater(int(found[1]), 850)
        self.assertEqual(int(found[3]), sum(len(target.split()) for _, target in self.lines))

    def test_unknown_words_are_pieces(self):
        output = self.done("translate", self.model, "--attention=text", "--text=Hundekatze")
        self.assertNotIn("<unk>", output)
        self.assertRegex(output, r'  from token \d, "▁?Hund"')

    def test_the_model_has_all_it_needs(self):
        other = self.at("other_model")
        shutil.copytree(self.at("run/model"), other)
        self.addCleanup(shutil.rmtree, other)
        translate = ("translate", "--model=" + other, "--text=der Hund")
        self.assertEqual(self.done(*translate), "the dog\n")
        for side in ("source", "target"):
            pieces = os.path.join(other, side + "_pieces.model")
            with open(pieces, "rb") as stream:
                model = stream.read()
            for wrong in (b"", b"garbage", model[:len(model) // 2]):
                with open(pieces, "wb") as stream:
                    stream.write(wrong)
                self.assertIn(pieces + ": ", self.refused(*translate))
            os.remove(pieces)
            self.assertIn(pieces, self.refused(*translate))
            with open(pieces, "wb") as stream:
                stream.write(model)

    def test_equal_texts_give_equal_pieces(self):
        self.done("train", *self.flags, "--output_dir=" + self.at("again"), "--epochs=1")
        for name in ("source_pieces.model", "target_pieces.model", "source_vocabulary.txt", "target_vocabulary.txt"):
            contents = []
            for directory in ("run/model", "again/model"):
                with open(os.path.join(self.at(directory), name), "rb") as stream:
                    contents.append(stream.read())
            self.assertEqual(*contents, name)

    def test_other_tokens_do_not_resume(self):
        for flag in ("--tokens=words", "--vocabulary_size=41"):
            self.assertIn("the checkpoint was made with " + flag[2:].partition("=")[0],
                          self.refused("train", *self.flags, flag, "--resume"))


class TrainedInHalf(TrainedOnPairs):
    """A model that is trained and saved in bfloat16."""
    FLAGS = ("--epochs=7", "--precision=bfloat16", "--save_precision=bfloat16")

    def test_translates(self):
        for flags in ((), ("--beam=3",)):
            self.assertEqual(self.done("translate", self.model, *flags, text=b"der Hund\nein Vogel jagt und sieht\n"),
                             "the dog\na bird hunts and sees\n")


class Data(Programs):
    def test_learns_to_read_dates(self):
        """What tools/train.sh seq2seq trains translates at least 98 of 100 dates exactly, nearly all of them new."""
        self.assertIn("7200 to train, 800 to validate",
                      self.done("train", "--threads=1", "--output_dir=" + self.at("all_dates")))
        output = self.done("translate", "--model=" + self.at("all_dates/model"), "--evaluate=dates")
        exact, count = re.match(r"(\d+) of (\d+) translations are exactly as given", output).groups()
        self.assertEqual(count, "8000")
        self.assertGreaterEqual(int(exact), 7840)

    def test_pieces_of_dates(self):
        self.assertIn("7200 to train, 800 to validate, 60 and 60 tokens",
                      self.done("train", "--data=dates", *QUICK, "--tokens=bpe", "--vocabulary_size=60", "--epochs=1",
                                "--batch_size=400", "--output_dir=" + self.at("dates")))
        translation = self.done("translate", "--model=" + self.at("dates/model"), "--text=the 3rd of May, 1998",
                                "--most_tokens=5")
        self.assertEqual(len(translation.splitlines()), 1)
        self.assertNotEqual(translation.strip(), "")

    def test_changed_texts_do_not_resume(self):
        sides = [self.write(name, "".join(word + "\n" for word in words) * 2) for name, words in
                 (("old_source", WORDS), ("old_target", WORDS.values()))]
        train = ("train", *QUICK, "--epochs=1", "--output_dir=" + self.at("texts"))
        of = lambda source, target: "--data=%s,%s" % (source, target)
        self.done(*train, of(*sides))
        self.done(*train, of(*[os.path.join(self.folder, ".", os.path.basename(side)) for side in sides]), "--resume")
        self.assertIn("made with data = FILE,FILE, but now it is FILE:", self.refused(*train, "--data=" + self.write(
            "table", "".join("%s\t%s\n" % pair for pair in WORDS.items()) * 2), "--resume"))
        # As many tokens, and others; of as many bytes.
        other = self.write("other", "".join(word.replace("e", "E") + "\n" for word in WORDS.values()) * 2)
        refusal = self.refused(*train, of(sides[0], other), "--resume")
        self.assertIn("the checkpoint was made with data (contents of file 2) = 88 bytes with CRC-32 ", refusal)
        self.assertIn(", but now it is 88 bytes with CRC-32 ", refusal)
        # A checkpoint of an earlier version knows no contents, but the tokens.
        as_of_an_earlier_version(self.at("texts"))
        self.assertIn("warning: an earlier version wrote the checkpoint, which doesn't say what data = %s,%s held"
                      % tuple(sides), self.done(*train, of(*sides), "--resume"))
        self.assertIn("made with data = %s," % sides[0], self.refused(*train, of(sides[0], other), "--resume"))
        os.replace(other, sides[1])
        self.assertIn("the checkpoint was made with vocabulary_tokens = ", self.refused(*train, of(*sides), "--resume"))

    def test_texts_that_pieces_cannot_be_learned_from(self):
        table = self.write("four", "ab\tc\n" * 4)
        train = ("train", "--data=" + table, "--tokens=bpe", "--output_dir=" + self.at("four_run"))
        self.assertEqual(self.refused(*train, "--vocabulary_size=5"),
                         "pieces of words: a vocabulary of 5: expected at least 6, for the 3 characters of the texts and 3 "
                         "marks")
        self.assertIn("there is no word of at most 4192 bytes",
                      self.refused(*train, "--data=" + self.write("long", "%s\tc\n" % ("a" * 5000) * 4)))

    def test_two_compressed_files(self):
        sides = [self.write(name + ".gz", " \n".join(words) + "\n") for name, words in
                 (("source", WORDS), ("target", WORDS.values()))]
        self.assertIn("9 to train, 1 to validate, 12 and 12 tokens",
                      self.done("train", "--data=" + ",".join(sides), "--epochs=1", "--output_dir=" + self.at("run"), *QUICK))

    def test_files_that_do_not_fit(self):
        two = self.write("two", "a\nb\n")
        three = self.write("three", "a\nb\nc\n")
        self.assertEqual(self.refused("train", "--data=%s,%s" % (two, three)),
                         "%s has 2 lines and %s has 3: expected as many" % (two, three))
        blank = self.write("blank", "a\n \n")
        self.assertEqual(self.refused("train", "--data=%s,%s" % (two, blank)),
                         '%s and %s, line 2: no target for the source "b"' % (two, blank))
        self.assertIn("there is no sentence", self.refused("train", "--data=" + self.write("empty", "\n\n")))
        self.assertIn("no_such_file", self.refused("train", "--data=" + self.at("no_such_file")))
        with open(self.at("cut.gz"), "wb") as stream:
            stream.write(gzip.compress(b"a\tb\n" * 1000)[:-12])
        self.assertIn("cut.gz", self.refused("train", "--data=" + self.at("cut.gz")))


class Flags(Programs):
    def test_options_that_do_not_fit(self):
        for flags, message in (
                ("--cell=rnn", 'cell = "rnn", expected gru or lstm'),
                ("--attention=dot", 'attention = "dot", expected bahdanau or luong'),
                ("--input_feeding", "input_feeding with attention = bahdanau, expected attention = luong"),
                ("--decoder=rnn", 'decoder = "rnn", expected attention_decoder or dynamic_rnn'),
                ("--layers=0", "layers = 0, expected at least 1"),
                ("--label_smoothing=1", "label_smoothing = 1, expected one in [0, 1)"),
                ("--dropout=1", "dropout = 1, expected one in [0, 1)"),
                ("--tokens=pieces", 'tokens "pieces": expected one of words, characters, bpe')):
            self.assertIn(message, self.refused("train", flags))


if __name__ == "__main__":
    unittest.main()
