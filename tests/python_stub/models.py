"""The networks of models/ in Python, and trainings of a few steps. train_reference.cc does the same in C++."""
import numpy

from tests.python_stub.package import skiff
from python_stub.examples import ernie

layers = skiff.layers
RELU_WEIGHTS = {"param_attr": skiff.ParamAttr(initializer=skiff.initializer.msra(uniform=False))}


def fractions(*shape):
    elements = numpy.arange(numpy.prod(shape), dtype=numpy.int64)
    return (((elements * 37 + 11) % 101).astype("float32") / numpy.float32(101)).reshape(shape)


def indices(*shape, count):
    return ((numpy.arange(numpy.prod(shape), dtype=numpy.int64) * 7 + 3) % count).reshape(shape)


def mlp(x):
    for _ in range(2):
        x = layers.fc(x, 16, act="relu", **RELU_WEIGHTS)
        x = layers.dropout(x, 0.25)
    return layers.fc(x, 4)


def lenet(x):
    for filters, padding in ((6, 2), (16, 0)):
        x = layers.conv2d(x, filters=filters, kernel=5, padding=padding, act="relu", **RELU_WEIGHTS)
        x = layers.pool2d(x, kernel=2)
    for units in (120, 84):
        x = layers.fc(x, units, num_flatten_dims=1, act="relu", **RELU_WEIGHTS)
    return layers.fc(x, 10)


def conv_batch_norm(x, filters, kernel, stride, act=""):
    x = layers.conv2d(x, filters=filters, kernel=kernel, stride=stride, padding=kernel // 2, bias_attr=None,
                      **RELU_WEIGHTS)
    return layers.batch_norm(x, act=act)


def resnet20(x):
    x = conv_batch_norm(x, 16, 3, 1, "relu")
    for stage, width in enumerate((16, 32, 64)):
        for block in range(3):
            stride = 2 if block == 0 and stage > 0 else 1
            y = conv_batch_norm(x, width, 3, stride, "relu")
            y = conv_batch_norm(y, width, 3, 1)
            if stride != 1:
                x = conv_batch_norm(x, width, 1, stride)
            x = layers.elementwise_add(y, x, act="relu")
    return layers.fc(layers.pool2d(x, type="avg", global_=True), 10, num_flatten_dims=1)


def classifier(network, images, classes):
    image = layers.data("image", [-1, *images[1:]])
    label = layers.data("label", [-1, 1], "int64")
    loss = layers.mean(layers.softmax_with_cross_entropy(network(image), label))
    skiff.optimizer.Momentum(learning_rate=0.02).minimize(loss)
    return loss, {"image": fractions(*images), "label": indices(images[0], 1, count=classes)}


def pretrained_ernie():
    # models/ernie also computes metrics, so the ops of a later dropout would draw other numbers there.
    sizes = ernie.Sizes(vocabulary=40, hidden=16, layers=2, heads=2, feed_forward=32, positions=16, dropout=0.0)
    loss = ernie.pretraining_loss(sizes, length=12, masked=2)
    rate = skiff.learning_rate.polynomial(start=0.01, decay_steps=10, end=0.0)
    rate = skiff.learning_rate.linear_warmup(rate, warmup_steps=2, start=0.0, end=0.01)
    skiff.optimizer.AdamW(learning_rate=rate, exclude_from_decay=["layer_norm", ".b_0"],
                          clip=skiff.clip_by_global_norm(1.0)).minimize(loss)
    return loss, {"token_ids": indices(3, 12, count=40), "sentence_ids": indices(3, 12, count=2),
                  "position_ids": indices(3, 12, count=12), "input_mask": fractions(3, 12),
                  "masked_positions": indices(3, 2, count=36), "masked_labels": indices(3, 2, count=40),
                  "masked_weights": fractions(3, 2), "sentence_label": indices(3, 1, count=2)}


MODELS = {
    "mlp": lambda: classifier(mlp, (8, 20), 4),
    "lenet": lambda: classifier(lenet, (8, 1, 28, 28), 10),
    "resnet20": lambda: classifier(resnet20, (4, 3, 16, 16), 10),
    "ernie": pretrained_ernie,
}


def train(model, steps):
    """The hash, after some steps, of the parameters, the running statistics and the states of the optimizer."""
    main, startup = skiff.Program(), skiff.Program()
    main.seed = startup.seed = 7
    with skiff.program_guard(main, startup):
        loss, feeds = MODELS[model]()
    executor = skiff.Executor()
    executor.run(startup)
    step = executor.compile(main)
    for _ in range(steps):
        step.run(feeds, [loss])
    return skiff.weights_hash(executor.scope, [var.name for var in main.block().vars if var.persistable])
