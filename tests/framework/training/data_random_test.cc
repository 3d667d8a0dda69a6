#include "framework/training/data_random.h"

#include <gtest/gtest.h>

namespace skiff::training {
namespace {

constexpr DataStream kStreams[] = {DataStream::kTrainingSamples, DataStream::kValidationSamples,
                                   DataStream::kShuffle, DataStream::kAugmentation};

TEST(DataRandom, IsOfAnotherStreamForEachUse) {
  for (const DataStream a : kStreams) {
    for (const DataStream b : kStreams) {
      EXPECT_EQ(DataRandom(1, a, 2).At(3) == DataRandom(1, b, 2).At(3), a == b);
    }
    EXPECT_NE(DataRandom(1, a, 2).At(3), DataRandom(2, a, 2).At(3));
    EXPECT_NE(DataRandom(1, a, 2).At(3), DataRandom(1, a, 3).At(3));
  }
}

// With one seed: image 0, say, isn't drawn from the words of op 0 of the startup program.
TEST(DataRandom, DrawsNoNumberOfAnOp) {
  constexpr uint64_t kTraining = uint64_t{1} << 31;  // framework/executor/run/plan_kernels.cc
  for (uint64_t id = 0; id < 5000; ++id) {
    for (const uint64_t op_id : {id, id | kTraining}) {
      const Philox of_op({.seed = 1, .op_id = op_id, .step = 0});
      for (const DataStream stream : kStreams) {
        ASSERT_NE(DataRandom(1, stream, 0).At(0), of_op.At(0)) << op_id;
      }
    }
  }
}

}  // namespace
}  // namespace skiff::training
