"""`skiff convert`: a saved model becomes a file of ONNX, and that a saved model again."""
import json
import os
import random
import struct
import subprocess
import tempfile
import unittest

SKIFF = os.path.abspath("tools/skiff/skiff")
TRAIN = os.path.abspath("models/lenet/train")
FINETUNE = os.path.abspath("models/ernie/finetune")


def run(*arguments):
    return subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def convert(*arguments):
    return run(SKIFF, "convert", *arguments)


def parameters(directory):
    return json.loads(run(SKIFF, "summary", "--json", os.path.join(directory, "__model__")).stdout)["parameters"]


def write_safetensors(path, tensors):
    """Writes lists of floats with their dims, by name."""
    header, data = {}, b""
    for name, (dims, values) in tensors.items():
        packed = struct.pack("<%df" % len(values), *values)
        header[name] = {"dtype": "F32", "shape": dims, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def bert_tensors(words, hidden, inner, positions):
    """A BertModel of transformers with one layer and random weights."""
    draw = random.Random(1)
    tensors = {}

    def add(name, *dims, mean=0.0):
        count = dims[0] * (dims[1] if len(dims) > 1 else 1)
        tensors[name] = (list(dims), [draw.gauss(mean, 0.1) for _ in range(count)])

    def add_linear(name, out, inputs):
        add(name + ".weight", out, inputs)
        add(name + ".bias", out)

    def add_norm(name):
        add(name + ".weight", hidden, mean=1.0)
        add(name + ".bias", hidden)

    add("embeddings.word_embeddings.weight", words, hidden)
    add("embeddings.position_embeddings.weight", positions, hidden)
    add("embeddings.token_type_embeddings.weight", 2, hidden)
    add_norm("embeddings.LayerNorm")
    layer = "encoder.layer.0."
    for part in ("self.query", "self.key", "self.value", "output.dense"):
        add_linear(layer + "attention." + part, hidden, hidden)
    add_norm(layer + "attention.output.LayerNorm")
    add_linear(layer + "intermediate.dense", inner, hidden)
    add_linear(layer + "output.dense", hidden, inner)
    add_norm(layer + "output.LayerNorm")
    add_linear("pooler.dense", hidden, hidden)
    return tensors


class ConvertCommand(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def path(self, name):
        return os.path.join(self.directory.name, name)

    def refusal(self, *arguments):
        result = convert(*arguments)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        return result.stderr

    def test_writes_and_reads_onnx(self):
        trained = run(TRAIN, "--epochs=1", "--limit_samples=64", "--output_dir=" + self.path("run"))
        self.assertEqual(trained.returncode, 0, trained.stderr)
        model, file, again = self.path("run/model"), self.path("lenet.onnx"), self.path("again")
        written = convert(model, "--to=onnx", "--output=" + file)
        self.assertEqual((written.returncode, written.stderr), (0, ""))
        self.assertEqual(written.stdout, f"wrote {file}\n")
        read = convert(file, "--from=onnx", "--output=" + again)
        self.assertEqual((read.returncode, read.stderr), (0, ""))
        self.assertEqual(sorted(os.listdir(again)), ["__model__", "__params__"])
        self.assertGreater(parameters(model), 0)
        self.assertEqual(parameters(again), parameters(model))
        fixed = convert(file, "--from=onnx", "--feed_dims=image=8,1,28,28", "--output=" + self.path("of_eight"))
        self.assertEqual((fixed.returncode, fixed.stderr), (0, ""))
        for dims, found in (("image", 'found "image", expected NAME='), ("image=8,x", 'found "x" in "image=8,x"'),
                            ("image=8,1,28,29", "to be [8, 1, 28, 29]"), ("picture=1", 'no input "picture"')):
            with self.subTest(dims):
                self.assertIn(found, self.refusal(file, "--from=onnx", "--feed_dims=" + dims, "--output=" + again))

    def write_bert(self):
        """A folder as transformers saves it: the weights in two files."""
        source = self.path("bert")
        os.mkdir(source)
        tensors = bert_tensors(words=12, hidden=8, inner=16, positions=16)
        parts = {"1.safetensors": dict(list(tensors.items())[:9]), "2.safetensors": dict(list(tensors.items())[9:])}
        for name, part in parts.items():
            write_safetensors(os.path.join(source, name), part)
        index = {"weight_map": {name: file for file, part in parts.items() for name in part}}
        config = {"model_type": "bert", "vocab_size": 12, "hidden_size": 8, "num_hidden_layers": 1,
                  "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 16,
                  "layer_norm_eps": 1e-12}
        vocabulary = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the is a b".replace(" ", "\n")
        for name, text in (("model.safetensors.index.json", json.dumps(index)), ("config.json", json.dumps(config)),
                           ("vocab.txt", vocabulary)):
            with open(os.path.join(source, name), "w", encoding="utf-8") as file:
                file.write(text)
        return source

    def test_makes_a_bert_that_is_fine_tuned(self):
        output = self.path("ernie")
        converted = convert(self.write_bert(), "--from=hf-bert", "--output=" + output)
        self.assertEqual((converted.returncode, converted.stderr), (0, ""))
        self.assertTrue(converted.stdout.startswith("taken: 23\nmissing: 0\nunused: 0\ndropped: 0\n"),
                        converted.stdout)
        self.assertEqual(sorted(os.listdir(output)), ["__model__", "__params__", "config.json", "vocabulary.txt"])
        with open(os.path.join(output, "config.json"), encoding="utf-8") as file:
            self.assertAlmostEqual(json.load(file)["layer_norm_eps"], 1e-12, delta=1e-18)
        texts = self.path("texts.tsv")
        with open(texts, "w", encoding="utf-8") as file:
            file.write("".join(f"{i % 2}\tthe film is {'good' if i % 2 else 'bad'}\n" for i in range(40)))
        tuned = run(FINETUNE, "--data=" + texts, "--initial_model=" + output, "--epochs=1", "--warmup=0", "--length=8",
                    "--batch_size=4", "--threads=1", "--output_dir=" + self.path("run"))
        self.assertEqual(tuned.returncode, 0, tuned.stderr)
        self.assertIn(f"23 parameters begin with those of {output}; 2 that it lacks, or has in another shape, are new: "
                      "cls_out.w_0, cls_out.b_0\n", tuned.stdout)

    def test_leaves_no_half_model(self):
        source = self.write_bert()
        output = "--output=" + self.path("ernie")
        os.truncate(os.path.join(source, "2.safetensors"), 1000)
        self.assertIn("2.safetensors", self.refusal(source, "--from=hf-bert", output))
        os.remove(os.path.join(source, "2.safetensors"))
        self.assertIn("names the file 2.safetensors, which isn't there", self.refusal(source, "--from=hf-bert", output))
        self.assertIn("model.safetensors.index.json", self.refusal(source, "--from=torchvision", output))
        self.assertIn("extent", self.refusal(source, "--from=hf-bert", "--extent=32", output))
        self.assertIn('found "a", expected REGEX=TO', self.refusal(source, "--from=hf-bert", "--rename=a", output))
        self.assertEqual(os.listdir(self.directory.name), ["bert"])

    def test_says_what_is_wrong(self):
        nothing = self.path("nothing.onnx")
        self.assertIn("--output is missing", self.refusal(nothing, "--from=onnx"))
        output = "--output=" + self.path("out")
        self.assertIn("expected one of them", self.refusal(nothing, output))
        self.assertIn("expected one of them", self.refusal(nothing, "--from=onnx", "--to=onnx", output))
        self.assertIn('there is no format "torch" to read, expected one of hf-bert, ',
                      self.refusal(nothing, "--from=torch", output))
        self.assertIn(nothing, self.refusal(nothing, "--from=onnx", output))
        self.assertIn("opset", self.refusal(nothing, "--from=onnx", "--opset=17", output))
        self.assertFalse(os.path.exists(self.path("out")))


if __name__ == "__main__":
    unittest.main()
