"""A value that only programs make."""
import numpy

from tests.python_stub.package import skiff

layers = skiff.layers


def gradient_of_a_table(return_tensors=True):
    """Selected rows: 4 and 1 of 9, two columns of 0.25."""
    main, startup = skiff.Program(), skiff.Program()
    with skiff.program_guard(main, startup):
        vectors = layers.embedding(layers.data("ids", [-1], "int64"), rows=9, width=2, is_sparse=True,
                                   param_attr=skiff.ParamAttr(name="table"))
        skiff.optimizer.Sgd(learning_rate=1.0).minimize(layers.mean(vectors))
    executor = skiff.Executor()
    executor.run(startup)
    return executor.run(main, {"ids": numpy.array([4, 1])}, ["table@GRAD"], return_tensors=return_tensors)[0]
