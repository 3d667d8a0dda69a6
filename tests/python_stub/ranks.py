"""A rank of ranks_test.py.

usage: ranks.py CASE[=ARGUMENT]...
Calls the functions, one after the other.
"""
import os
import socket
import sys
import threading
import time

import numpy

import skiff
from skiff import distributed, layers

RANDOM = numpy.random.default_rng(0)
# Nine batches of four, which two ranks can't share evenly.
ROWS = {"x": RANDOM.normal(size=(36, 5)).astype("float32"), "label": RANDOM.integers(0, 3, (36, 1))}


def check(condition):
    """As assert, which an option of Python leaves out."""
    if not condition:
        raise AssertionError


def check_raises(error, text, call):
    try:
        call()
    except error as raised:
        check(text in str(raised))
    else:
        raise AssertionError(f"expected {error}")


def programs(merged_steps=1):
    """The keyword arguments of a Trainer that are about its programs."""
    main, startup = skiff.Program(), skiff.Program()
    main.seed = startup.seed = 5
    with skiff.program_guard(main, startup):
        x, label = layers.data("x", [-1, 5]), layers.data("label", [-1, 1], "int64")
        scores = layers.fc(layers.dropout(layers.fc(x, 16, act="relu"), 0.3), 3)
        loss = layers.mean(layers.softmax_with_cross_entropy(scores, label))
        test = main.clone_for_test()
        rate = skiff.learning_rate.constant(0.1)
        merge = skiff.GradientMerge(steps=merged_steps)
        skiff.optimizer.Momentum(learning_rate=rate).minimize(loss, gradient_merge=merge)
    return {"main": main, "startup": startup, "test": test, "loss": loss, "learning_rate": rate, "model_inputs": [x],
            "model_outputs": [scores]}


def whole_reader(**options):
    return skiff.ArrayReader(ROWS, batch_size=4, **options)


def compiled(merged_steps=1, **options):
    """A training, ready to run: (step, loss, executor, main)."""
    made = programs(merged_steps)
    executor = skiff.Executor()
    executor.run(made["startup"])
    return executor.compile(made["main"], data_parallel=True, **options), made["loss"], executor, made["main"]


def say(*what):
    if distributed.is_main():
        print(*what)


# ---- what works

def place():
    distributed.init(timeout=60)
    check_raises(skiff.FailedPreconditionError, "have started already", distributed.init)
    rank, size = distributed.rank(), distributed.world_size()
    check((distributed.local_rank(), distributed.local_size()) == (rank, size))
    check(distributed.host() == socket.gethostname() and distributed.is_main() == (rank == 0))
    print(f"rank {rank} of {size}")


def gather():
    rank, size = distributed.rank(), distributed.world_size()
    check(distributed.all_gather(rank / 2) == [i / 2 for i in range(size)])
    check(distributed.all_gather({"name": "b" * rank}) == [{"name": "b" * i} for i in range(size)])
    for i, array in enumerate(distributed.all_gather(numpy.full((rank, 2), rank, "int16"))):
        check(array.dtype == numpy.int16 and array.shape == (i, 2) and (array == i).all())
    check_raises(TypeError, "pickle", lambda: distributed.all_gather(skiff.Scope()))
    distributed.barrier()


def devices():
    check_raises(skiff.Error, f"cuda:{distributed.local_rank()}", lambda: skiff.Executor("cuda"))
    check_raises(skiff.Error, "cuda:7", lambda: skiff.Executor("cuda:7"))


def batches():
    rank = distributed.rank()
    reader, alone = skiff.ShardedReader(whole_reader(shuffle=True)), whole_reader(shuffle=True)
    check(len(reader) == 9)
    every = [batch["x"] for epoch in range(3) for batch in alone.epoch(epoch)]
    # The last run of epoch 0 takes the first batch of epoch 1, which then begins behind it; but not the second time.
    for epoch, first, runs in ((0, 0, 5), (1, 10, 4), (1, 9, 5)):
        own = [batch["x"] for batch in reader.epoch(epoch)]
        numpy.testing.assert_array_equal(own, every[first + rank:first + 2 * runs:2])
    frozen = numpy.zeros((1, 1))
    frozen.flags.writeable = False
    made = skiff.IterableReader(lambda epoch: ({"i": numpy.full((1, 1), i), "frozen": frozen} for i in range(3)), 3)
    for _ in range(2):
        own = list(skiff.ShardedReader(made, last_run="partial").epoch(0))
        check([batch["i"].item() for batch in own] == list(range(rank, 3, 2)))
        check(not any(batch["frozen"].flags.writeable for batch in own))
    check_raises(skiff.InvalidArgumentError, "expected filled or partial",
                 lambda: skiff.ShardedReader(made, last_run="all"))


def loop(merged_steps="1", **options):
    """Two epochs, whose batches are nine for each of two ranks. Prints the weights and the states."""
    step, loss, executor, main = compiled(int(merged_steps), **options)
    reader = skiff.ShardedReader(whole_reader(shuffle=True))
    losses = [step.run(batch, [loss])[0].item() for epoch in (0, 1) for batch in reader.epoch(epoch)]
    found = skiff.weights_hash(executor.scope, main.parameters)
    check(distributed.all_gather(found) == [found] * distributed.world_size())
    losses, whole = sum(distributed.all_gather(losses), []), step.gather_scope()
    if distributed.is_main():
        states = [name + "_velocity_0" for name in main.parameters]
        print(len(losses), "losses, weights", skiff.weights_hash(whole, main.parameters + states))


def loop_of_small_buckets():
    loop(reduction="ranks", bucket_bytes=1, overlap="on")


def loop_of_shards():
    loop(shard_optimizer=True, passes="+merge_optimizer")


def fast_sums():
    step, loss, executor, main = compiled(reduction="fast")
    bound = step.bind(ROWS, [loss])
    bound.step()
    check(len(bound.timed_step()) > 0 and numpy.isfinite(bound.fetch()))
    found = skiff.weights_hash(executor.scope, main.parameters)
    check(distributed.all_gather(found) == [found] * distributed.world_size())
    check_raises(skiff.InvalidArgumentError, "expected ranks or fast", lambda: compiled(reduction="slow"))
    check_raises(skiff.InvalidArgumentError, "expected auto, on or off", lambda: compiled(overlap="yes"))


def evaluation_of_one_rank():
    made = programs()
    executor = skiff.Executor()
    executor.run(made["startup"])
    step = executor.compile(made["test"], data_parallel=True)
    if distributed.is_main():
        check(numpy.isfinite(step.run(ROWS, [made["loss"]])[0]))


class StopAt:
    """A callback that stops the training of all ranks after a step, where rank 1 calls it."""

    def __init__(self, step):
        self.step = step

    def on_step(self, report, control):
        if report.step == self.step and distributed.rank() == distributed.world_size() - 1:
            control.stop()


def trainer(folder, merged_steps=1, train=None, **options):
    return skiff.Trainer(**programs(merged_steps), train=skiff.ShardedReader(train or whole_reader(shuffle=True)),
                         validation=skiff.ShardedReader(whole_reader(), last_run="partial"), output_dir=folder,
                         epochs=2, data_parallel=True, **options)


def train(folder):
    """Prints the weights: a process that is alone merges as many gradients as two ranks have."""
    steps = 2 // distributed.world_size()
    whole = trainer(folder + "/whole", steps).run()
    stopped = trainer(folder + "/parts", steps, callbacks=[StopAt(6)]).run()
    check(whole.finished and not stopped.finished and len(whole.records) == 2 * distributed.is_main())
    second = trainer(folder + "/parts", steps)
    second.resume()
    check(second.run().weights_hash == whole.weights_hash)
    check(second.evaluate().keys() == {"loss"})
    say("weights", whole.weights_hash)


def threads(file):
    """One of two threads of rank 0 waits for rank 1, which waits until the other thread is refused."""
    refused = []

    def meet():
        try:
            distributed.barrier()
        except skiff.FailedPreconditionError as error:
            refused.append(str(error))
            with open(file, "w", encoding="utf-8"):
                pass
    distributed.rank()
    if distributed.is_main():
        both = [threading.Thread(target=meet) for _ in range(2)]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        check(len(refused) == 1 and "another thread of this rank" in refused[0])
    else:
        while not os.path.exists(file):
            time.sleep(0.01)
        distributed.barrier()


# ---- what fails: on rank 1, while rank 0 goes on

def raise_in_a_loop():
    step, loss, _, _ = compiled()
    for i, batch in enumerate(skiff.ShardedReader(whole_reader()).epoch(0)):
        step.run(batch, [loss])
        if i == 2 and not distributed.is_main():
            print("three steps")
            raise ZeroDivisionError("after three steps")


def raise_in_a_reader(folder):
    def make_epoch(epoch):
        for i, batch in enumerate(whole_reader().epoch(epoch)):
            if i == 5 and not distributed.is_main():
                raise ZeroDivisionError("in batch 5")
            yield batch
    trainer(folder, train=skiff.IterableReader(make_epoch, 9)).run()


def exit_with_status(status):
    distributed.barrier()
    if not distributed.is_main():
        sys.exit(int(status))
    distributed.barrier()


def fork_children():
    distributed.barrier()
    if not distributed.is_main():
        for status in (0, 3):
            child = os.fork()
            if child == 0:
                sys.exit(status)
            check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == status)
        child = os.fork()
        if child == 0:
            raise ZeroDivisionError("in the child")
        check(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1)
    distributed.barrier()


def leave_a_thread():
    distributed.barrier()
    if not distributed.is_main():
        threading.Thread(target=distributed.barrier, daemon=True).start()
        time.sleep(0.3)
        return
    time.sleep(60)


def hang():
    distributed.init(timeout=1)
    if distributed.is_main():
        distributed.barrier()
    time.sleep(60)


def abort():
    distributed.barrier()
    if not distributed.is_main():
        print("some words")
        distributed.abort("the disk is full")
    distributed.barrier()


def begin_with_other_weights():
    step, loss, executor, _ = compiled()
    executor.scope["fc_1.b_0"] = executor.scope["fc_1.b_0"] + numpy.float32(distributed.rank())
    step.run(ROWS, [loss])


def go_on_after_an_error():
    step, loss, _, _ = compiled()
    step.run(ROWS, [loss])
    if not distributed.is_main():
        check_raises(skiff.OutOfRangeError, "label", lambda: step.run({**ROWS, "label": ROWS["label"] + 9}, [loss]))
    step.run(ROWS, [loss])


if __name__ == "__main__":
    for case in sys.argv[1:]:
        name, *argument = case.split("=")
        globals()[name](*argument)
