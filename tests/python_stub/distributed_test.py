"""Tests skiff.distributed without a launcher: a process is rank 0 of 1. ranks_test.py has several ranks."""
import socket
import subprocess
import sys
import unittest

import numpy

from tests.python_stub.package import FOLDER, skiff

distributed, layers = skiff.distributed, skiff.layers


def linear():
    """(main, executor) of a training."""
    main, startup = skiff.Program(), skiff.Program()
    with skiff.program_guard(main, startup):
        loss = layers.mean(layers.fc(layers.data("x", [-1, 2]), 1))
        skiff.optimizer.Sgd(learning_rate=0.1).minimize(loss)
    executor = skiff.Executor()
    executor.run(startup)
    return main, executor


class Alone(unittest.TestCase):
    def test_is_rank_0_of_1(self):
        self.assertEqual((distributed.rank(), distributed.world_size()), (0, 1))
        self.assertEqual((distributed.local_rank(), distributed.local_size()), (0, 1))
        self.assertEqual(distributed.host(), socket.gethostname())
        self.assertTrue(distributed.is_main())
        distributed.barrier()

    def test_starts_once(self):
        distributed.rank()
        with self.assertRaisesRegex(skiff.FailedPreconditionError, "have started already"):
            distributed.init(timeout=60)

    def test_gathers_copies(self):
        array = numpy.arange(3)
        gathered, = distributed.all_gather(array)
        numpy.testing.assert_array_equal(gathered, array)
        self.assertFalse(numpy.shares_memory(gathered, array))

    def test_reader_has_all_batches(self):
        rows = {"x": numpy.arange(10).reshape(10, 1)}
        shared = skiff.ShardedReader(skiff.ArrayReader(rows, batch_size=4))
        self.assertEqual([len(batch["x"]) for batch in shared.epoch(0)], [4, 4, 2])

    def test_program_runs_alone(self):
        weights = []
        for options in ({}, {"data_parallel": True, "reduction": "fast", "bucket_bytes": 0, "overlap": "off"}):
            main, executor = linear()
            executor.compile(main, **options).run({"x": numpy.ones((3, 2), "float32")})
            weights.append(skiff.weights_hash(executor.scope, main.parameters))
        self.assertEqual(*weights)

    def test_refuses_options_of_ranks(self):
        main, executor = linear()
        for options, message in (({"reduction": "fast"}, "expected data_parallel=True"),
                                 ({"shard_optimizer": True}, "expected data_parallel=True"),
                                 ({"sync_batch_norm": True}, "expected data_parallel=True"),
                                 ({"data_parallel": True, "reduction": "slow"}, "expected ranks or fast"),
                                 ({"data_parallel": True, "bucket_bytes": -1}, "bucket_bytes = -1: expected")):
            with self.subTest(options), self.assertRaisesRegex(skiff.InvalidArgumentError, message):
                executor.compile(main, **options)

    def test_abort_ends_the_process(self):
        for script, message in (("skiff.distributed.abort('why')", "why\n"),
                                ("skiff.distributed.rank(); skiff.distributed.abort('why')",
                                 f"rank 0 (host {socket.gethostname()}): why\n")):
            done = subprocess.run([sys.executable, "-c", f"import skiff; print('words'); {script}; print('not this')"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                                  env={"PYTHONPATH": FOLDER})
            self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "words\n", message))


if __name__ == "__main__":
    unittest.main()
