// Loops and arrays on CUDA: the losses of the CPU. Skipped if there is no device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "memory/places.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/ragged_training.h"

namespace skiff {
namespace {

TEST(LoopsOnCuda, ALoopOverRaggedBatchesRunsThereWithItsGradient) {
  try {
    AllocatorOf(harness::CudaPlace());
  } catch (const Error& error) {
    GTEST_SKIP() << error.what();
  }
  // Later batches are longer and shorter, so that arrays and stacks grow and aren't full.
  const std::vector<harness::Lengths> batches = {{3, 1, 2}, {5, 2, 7}, {1, 1}, {3, 1, 2}};
  const harness::RaggedTraining on_cpu = harness::TrainRagged(Place::Cpu(), nullptr, {}, batches);
  const harness::RaggedTraining found =
      harness::TrainRagged(harness::CudaPlace(), nullptr, {}, batches);
  EXPECT_THAT(found.on_host, testing::IsEmpty());
  for (size_t i = 0; i < on_cpu.losses.size(); ++i) {
    EXPECT_NEAR(found.losses[i], on_cpu.losses[i], 1e-4f) << "step " << i;
  }
  EXPECT_NE(on_cpu.losses.front(), on_cpu.losses.back());
}

}  // namespace
}  // namespace skiff
