"""Runs the programs of models/ernie as a user does: trains on the world, fills in masks, fine-tunes, makes mistakes."""
import json
import os
import re
import subprocess
import unittest

from tests.models.common.folder import Folder

QUICK = ("--threads=1", "--world_documents=60", "--epochs=1", "--warmup=0", "--length=32", "--layers=1", "--hidden=16",
         "--heads=2", "--feed_forward=16")


def run(name, *arguments, text=None):
    command = [os.path.abspath("models/ernie/" + name), *arguments]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


class Programs(Folder):
    """Tests with a folder each."""

    def setUp(self):
        self.make_folder(self.addCleanup)

    def done(self, name, *arguments, text=None):
        """The output of a program that has to succeed."""
        result = run(name, *arguments, text=text)
        self.assertEqual(result.returncode, 0, result.stderr + result.stdout)
        self.assertEqual(result.stderr, "")
        return result.stdout

    def refused(self, name, *arguments, text=None):
        """The error of a program that has to fail."""
        return self.error_of(run(name, *arguments, text=text))


class Trained(Programs):
    """A model that has read the world a few times: long enough to know a part of it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.model = cls.at("model")
        result = run("pretrain", "--threads=1", "--epochs=18", "--length=32", "--hidden=64", "--feed_forward=128",
                     "--dropout=0", "--learning_rate=2e-3", "--warmup=50", "--output_dir=" + cls.folder)
        assert result.returncode == 0, result.stderr
        cls.output = result.stdout

    def test_knows_more_than_the_frequency_baseline(self):
        baseline = float(re.search(r"\(the most frequent entity answers (\S+) %", self.output)[1])
        self.assertGreater(baseline, 1)
        last = re.search(r"^epoch 18/18 .*validation .*answer_accuracy (\S+) %", self.output, re.MULTILINE)
        self.assertGreater(float(last[1]), 1.5 * baseline)

    def test_fills_in_a_typed_and_a_piped_sentence(self):
        sentence = "Everybody knows Emil as a good [MASK]."
        typed = self.done("predict", "--model=" + self.model, "--guesses=3", "--text=" + sentence)
        first, guesses = typed.splitlines()
        self.assertEqual(first, sentence)
        self.assertEqual(len(re.findall(r"\S+ [\d.]+ %", guesses)), 3, guesses)
        piped = self.done("predict", "--model=" + self.model, "--guesses=3", text=f"\ufeff{sentence}\r\n{sentence}\n")
        self.assertEqual(piped, 2 * typed)

    def test_a_line_that_cannot_be_filled_in_costs_no_other(self):
        result = run("predict", "--model=" + self.model, "--guesses=1", text="Emil eats [MASK].\nEmil.\n\nI am [MASK].\n")
        self.assertEqual(result.returncode, 1)
        self.assertEqual(result.stderr, 'error: line 2: the text has no [MASK] to fill in: "Emil."\n'
                                        'error: line 3: the text has no [MASK] to fill in: ""\n')
        self.assertEqual([line for line in result.stdout.splitlines() if not line.startswith("  ")],
                         ["Emil eats [MASK].", "Emil.", "", "I am [MASK]."])

    def test_predict_refuses_what_it_cannot_fill_in(self):
        model = "--model=" + self.model
        self.assertEqual(self.refused("predict", model, text=""),
                         "there is no text: expected --text or lines of standard input")
        self.assertEqual(self.refused("predict", model, "--text="), 'the text has no [MASK] to fill in: ""')
        self.assertEqual(self.refused("predict", model, "--guesses=0", text="[MASK]"),
                         "guesses = 0: expected at least 1")
        self.assertIn("/nowhere/vocabulary.txt", self.refused("predict", "--model=/nowhere", "--text=[MASK]"))

    def texts(self):
        return self.write("texts", "".join(f"{i % 2}\tEmil is a {['dentist', 'baker'][i % 2]}.\n" for i in range(40)))

    def fine_tune(self, *arguments):
        return ("finetune", "--threads=1", "--epochs=1", "--batch_size=4", "--data=" + self.texts(),
                "--output_dir=" + self.at("run"), *arguments)

    def test_fine_tunes(self):
        output = self.done(*self.fine_tune("--initial_model=" + self.model))
        self.assertRegex(output, r"\d+ parameters begin with those of .*/model; 4 that it lacks, or has in another shape, are new: "
                                 r"pooled_fc.w_0, pooled_fc.b_0, cls_out.w_0, cls_out.b_0\n")
        with open(os.path.join(self.model, "config.json"), encoding="utf-8") as stream:
            before = json.load(stream)
        with open(self.at("run/model/config.json"), encoding="utf-8") as stream:
            self.assertEqual(json.load(stream), before)

    def test_fine_tuning_refuses_another_network_than_that_of_the_model(self):
        initial = "--initial_model=" + self.model
        self.assertEqual(self.refused(*self.fine_tune(initial, "--layers=2")),
                         "--layers changes nothing: the network is that of --initial_model")
        self.assertEqual(self.refused(*self.fine_tune(initial, "--vocabulary_size=100")),
                         "--vocabulary_size changes nothing: the vocabulary is that of --initial_model")
        copy = self.at("copy")
        os.mkdir(copy)
        for name in os.listdir(self.model):
            os.link(os.path.join(self.model, name), os.path.join(copy, name))
        path = os.path.join(copy, "config.json")
        with open(path, encoding="utf-8") as stream:
            config = json.load(stream)
        os.remove(path)
        self.write("copy/config.json", json.dumps({**config, "num_hidden_layers": 3}))
        error = self.refused(*self.fine_tune("--initial_model=" + copy))
        self.assertRegex(error, r"^.*/copy: the model lacks the parameters encoder_layer_2_\S+ \[.*: expected all "
                                r"but those of cls_out and pooled_fc: the model has another configuration, or other "
                                r"names; it has what becomes no parameter: mask_lm_")
        self.write("copy/config.json", json.dumps({**config, "hidden_size": 32}))
        self.assertRegex(self.refused(*self.fine_tune("--initial_model=" + copy)),
                         r"parameter \"\w+\" is float32\[\d+, 64\], expected float32\[\d+, 32\]: the model has ")

    def test_fine_tunes_from_scratch_with_sizes_and_a_vocabulary(self):
        vocabulary = os.path.join(self.model, "vocabulary.txt")
        config = self.write("config.json", json.dumps({"hidden_size": 16, "num_hidden_layers": 1}))
        self.done(*self.fine_tune("--config=" + config, "--vocabulary=" + vocabulary, "--heads=4"))
        with open(self.at("run/model/config.json"), encoding="utf-8") as stream:
            sizes = json.load(stream)
        found = [sizes[key] for key in ("hidden_size", "num_hidden_layers", "num_attention_heads")]
        self.assertEqual(found, [16, 1, 4])
        with open(self.at("run/model/vocabulary.txt"), encoding="utf-8") as made, \
             open(vocabulary, encoding="utf-8") as given:
            self.assertEqual(made.read(), given.read())
        self.assertEqual(self.refused(*self.fine_tune("--vocabulary=" + vocabulary, "--vocabulary_size=9")),
                         "--vocabulary_size changes nothing: the vocabulary is that of --vocabulary")


class Pretraining(Programs):
    def refused_training(self, *flags):
        return self.refused("train", *QUICK, "--output_dir=" + self.at("run"), *flags)

    def test_single_flags_win_over_the_file(self):
        config = self.write("config.json",
                            json.dumps({"hidden_size": 64, "num_hidden_layers": 3, "hidden_act": "relu",
                                        "hidden_dropout_prob": 0.5, "attention_probs_dropout_prob": 0.4}))
        # The last of two flags counts, as everywhere.
        self.done("train", *QUICK, "--config=" + config, "--dropout=0.25", "--hidden=0",
                  "--output_dir=" + self.at("run"))
        with open(self.at("run/model/config.json"), encoding="utf-8") as stream:
            sizes = json.load(stream)
        self.assertEqual(sizes["hidden_size"], 64)
        self.assertEqual(sizes["num_hidden_layers"], 1)
        self.assertEqual(sizes["hidden_act"], "relu")
        self.assertEqual(sizes["hidden_dropout_prob"], 0.25)
        self.assertEqual(sizes["attention_probs_dropout_prob"], 0.25)

    def test_an_edited_file_does_not_resume(self):
        arguments = ("train", *QUICK[:-4], "--stop_after=2", "--output_dir=" + self.at("run"),
                     "--config=" + self.write("config.json", json.dumps({"hidden_size": 16, "num_attention_heads": 2})))
        self.done(*arguments)
        self.write("config.json", json.dumps({"hidden_size": 32, "num_attention_heads": 2}))
        self.assertIn("the checkpoint was made with hidden_size = 16, but now it is 32:",
                      self.refused(*arguments, "--resume"))
        self.write("config.json", json.dumps({"num_attention_heads": 2, "hidden_size": 16, "model_type": "ernie"}))
        self.done(*arguments, "--resume")

    def test_refuses_sizes_that_contradict_the_data(self):
        def of_config(**sizes):
            return self.refused_training("--config=" + self.write("config.json", json.dumps(sizes)),
                                         "--sentence_tasks=next_sentence,distance")

        self.assertRegex(of_config(vocab_size=18000),
                         r"^.*/config.json: ERNIE: vocab_size = 18000: expected the \d+ tokens of the vocabulary$")
        self.assertRegex(of_config(task_type_vocab_size=1), r"^.*: task_type_vocab_size = 1, expected at least 2$")
        self.assertRegex(of_config(type_vocab_size=1), r"^.*: type_vocab_size = 1, expected at least 2$")
        self.assertRegex(of_config(hidden_size="wide"),
                         r"^.*/config.json: configuration key \"hidden_size\": expected an integer")
        self.assertEqual(self.refused_training("--heads=3"),
                         "ERNIE: hidden_size = 16: expected a multiple of the 3 heads")
        self.assertEqual(self.refused_training("--positions=16"),
                         "ERNIE: sequences of length 32: expected 1 to the 16 positions that the network has")

    def test_refuses_flags_that_change_nothing(self):
        texts = self.write("texts", 20 * "the cat sat .\nit saw a dog .\n\n")
        for flags, error in {
                ("--held_back=0.2",): "--held_back changes nothing: the world validates by questions",
                ("--data=text:" + texts,): "--world_documents changes nothing: --data isn't the world",
                ("--vocabulary=x", "--vocabulary_size=9"):
                    "--vocabulary_size changes nothing: the vocabulary is that of --vocabulary",
                ("--masking=word", "--lexicon=names"):
                    'lexicon names: masking "word" doesn\'t read it: expected masking "phrase", or no lexicon',
        }.items():
            with self.subTest(flags):
                self.assertEqual(self.refused_training(*flags), error)

    def test_refuses_bad_files(self):
        def refused(*flags):
            return self.refused("train", "--threads=1", "--output_dir=" + self.at("run"), *flags)

        self.assertIn("/empty", refused("--data=text:" + self.write("empty", "")))
        self.assertIn("cannot hold back", refused("--data=text:" + self.write("one", "only one sentence .\n")))
        self.assertIn("[PAD]", refused("--vocabulary=" + self.write("tokens", "a\nb\n")))
        lexicon = self.write("lexicon", "好\n")
        self.assertEqual(refused("--lexicon=" + lexicon),
                         "the vocabulary has the words of none of the 1 entries of the lexicon")
        vocabulary = self.write("vocabulary", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
        long = self.write("instances", 10 * "2 5 5 3;0 0 0 0;0 1 2 3;-1 0 0 -1;0\n")
        instances = ("--data=ernie_demo:" + long, "--vocabulary=" + vocabulary)
        self.assertEqual(refused(*instances, "--length=3", "--most_masked=2"),
                         long + ":1 has 4 tokens: expected at most length = 3")
        self.assertIn("expected next_sentence, whose labels it has, or none",
                      refused(*instances, "--sentence_tasks=distance"))
        self.assertFalse(os.path.exists(self.at("run")))


class Questions(Programs):
    def test_have_no_accuracy_of_sentences(self):
        output = self.done("train", *QUICK, "--sentence_tasks=next_sentence", "--output_dir=" + self.at("run"))
        training, validation = re.search(r"^epoch 1/1  (.*)  \|  validation (.*)  \|", output, re.MULTILINE).groups()
        self.assertIn("next_sentence_accuracy", training)
        self.assertNotIn("next_sentence_accuracy", validation)
        self.assertIn("answer_accuracy", validation)


if __name__ == "__main__":
    unittest.main()
