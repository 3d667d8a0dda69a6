"""The pre-training of ERNIE: masked words, and whether one sentence follows another.

models/ernie builds the same network in C++; a test compares the weights after a few steps. `python3 ernie.py` trains on
a made-up language, in which each word says which one comes next.
"""
from dataclasses import dataclass

import numpy

import skiff
from skiff import ParamAttr, layers
from skiff.initializer import constant, truncated_normal


@dataclass
class Sizes:
    vocabulary: int
    hidden: int = 128
    layers: int = 2
    heads: int = 2
    feed_forward: int = 512
    positions: int = 512  # the longest sequence
    sentences: int = 2
    dropout: float = 0.1
    attention_dropout: float = 0.1


def weight(name):
    return ParamAttr(name=name, initializer=truncated_normal(stddev=0.02))


def embed(ids, rows, width, name):
    return layers.embedding(ids, rows=rows, width=width, param_attr=weight(name))


def dense(x, size, name, act=""):
    return layers.fc(x, size, param_attr=weight(name + ".w_0"), bias_attr=ParamAttr(name=name + ".b_0"), act=act)


def norm(x, name):
    return layers.layer_norm(x, param_attr=ParamAttr(name=name + "_layer_norm_scale"),
                             bias_attr=ParamAttr(name=name + "_layer_norm_bias"))


def drop(x, sizes):
    return layers.dropout(x, sizes.dropout) if sizes.dropout else x


def encoder(sizes, length):
    """A vector for each token: [N, length, hidden]."""
    tokens, sentences, positions = (layers.data(name, [-1, length], "int64")
                                    for name in ("token_ids", "sentence_ids", "position_ids"))
    is_token = layers.data("input_mask", [-1, length])
    # The order decides which random numbers initialize which table: here that of models/ernie.
    sentence = embed(sentences, sizes.sentences, sizes.hidden, "sent_embedding")
    position = embed(positions, sizes.positions, sizes.hidden, "pos_embedding")
    x = embed(tokens, sizes.vocabulary, sizes.hidden, "word_embedding") + position + sentence
    x = drop(norm(x, "pre_encoder"), sizes)
    return layers.transformer_encoder(
        x, layers=sizes.layers, heads=sizes.heads, feed_forward=sizes.feed_forward, dropout=sizes.dropout,
        attention_dropout=sizes.attention_dropout, mask=layers.padding_mask(is_token), param_attr=weight(""),
        name="encoder")


def word_scores(encoded, places, sizes):
    """Scores for the tokens at some places, by the product with the word embedding: [places, vocabulary]."""
    chosen = layers.gather(layers.reshape(encoded, [-1, sizes.hidden]), places)
    hidden = norm(dense(chosen, sizes.hidden, "mask_lm_trans_fc", "gelu"), "mask_lm_trans")
    table = skiff.default_main_program().block().variable("word_embedding")
    bias = ParamAttr(name="mask_lm_out_fc.b_0", initializer=constant(0.0))
    scores = layers.mat_mul(hidden, table, transpose_y=True)
    return layers.elementwise_add(scores, layers.create_parameter([sizes.vocabulary], attr=bias), axis=1)


def pretraining_loss(sizes, length, masked):
    encoded = encoder(sizes, length)
    places = layers.data("masked_positions", [-1, masked], "int64")
    labels = layers.reshape(layers.data("masked_labels", [-1, masked], "int64"), [-1, 1])
    weights = layers.reshape(layers.data("masked_weights", [-1, masked]), [-1, 1])
    scores = word_scores(encoded, layers.reshape(places, [-1]), sizes)
    losses = layers.softmax_with_cross_entropy(scores, labels)
    # A batch without a masked token divides by this instead of 0.
    least = layers.fill_constant([1], "float32", 1e-6)
    word_loss = layers.reduce_sum(losses * weights) / layers.elementwise_max(layers.reduce_sum(weights), least)

    follows = layers.data("sentence_label", [-1, 1], "int64")
    first = layers.slice(encoded, axes=[1], starts=[0], ends=[1])
    pooled = dense(layers.reshape(first, [-1, sizes.hidden]), sizes.hidden, "pooled_fc", "tanh")
    answer = dense(drop(pooled, sizes), 2, "next_sent_fc")
    return word_loss + layers.mean(layers.softmax_with_cross_entropy(answer, follows))


def made_up_batch(random, sizes, length, masked, batch=16):
    """Two sentences of words that count up; the second begins anew if it doesn't follow. Word 0 is the mask."""
    half = length // 2
    follows = random.integers(0, 2, (batch, 1))
    first = random.integers(0, sizes.vocabulary - 1, (batch, 1))
    other = random.integers(0, sizes.vocabulary - 1, (batch, 1))
    second = numpy.where(follows == 1, first + half, other)
    words = numpy.concatenate([first + numpy.arange(half), second + numpy.arange(half)], axis=1)
    words = 1 + words % (sizes.vocabulary - 1)
    places = numpy.stack([random.choice(length, masked, replace=False) for _ in range(batch)])
    rows = numpy.arange(batch)[:, None]
    labels = words[rows, places]
    words[rows, places] = 0
    return {"token_ids": words, "sentence_ids": numpy.repeat([[0] * half + [1] * half], batch, 0),
            "position_ids": numpy.repeat([numpy.arange(length)], batch, 0),
            "input_mask": numpy.ones((batch, length), "float32"), "masked_positions": rows * length + places,
            "masked_labels": labels, "masked_weights": numpy.ones((batch, masked), "float32"),
            "sentence_label": follows}


def main(steps=600, length=16, masked=3):
    sizes = Sizes(vocabulary=21, hidden=64, feed_forward=256, positions=length,
                  dropout=0.0, attention_dropout=0.0)
    main_program, startup = skiff.Program(), skiff.Program()
    main_program.seed = startup.seed = 1
    with skiff.program_guard(main_program, startup):
        loss = pretraining_loss(sizes, length, masked)
        skiff.optimizer.Adam(learning_rate=1e-3, clip=skiff.clip_by_global_norm(1.0)).minimize(loss)
    executor = skiff.Executor()
    executor.run(startup)
    step = executor.compile(main_program)
    random = numpy.random.default_rng(1)
    for i in range(1, steps + 1):
        value, = step.run(made_up_batch(random, sizes, length, masked), [loss])
        if i % 100 == 0:
            print(f"step {i}  loss {value.item():.4f}")
    return value.item()


if __name__ == "__main__":
    main()
