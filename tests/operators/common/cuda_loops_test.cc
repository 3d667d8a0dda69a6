// What CUDA kernels know about loops and reductions, on the host: no device is needed.
#include "operators/common/cuda_loops.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "operators/common/cuda_reduction.h"

namespace skiff {
namespace {

TEST(FastDivisor, DividesAllNumbersBelow2To31) {
  constexpr uint32_t kHighest = 0x7FFFFFFF;
  for (const uint32_t divisor : {1U, 2U, 3U, 5U, 7U, 49U, 255U, 256U, 257U, 65535U, 65537U,
                                 1000003U, 0x3FFFFFFFU, 0x40000000U, 0x40000001U, kHighest}) {
    const FastDivisor fast(divisor);
    for (uint32_t i = 0; i < 3000; ++i) {
      const uint32_t multiple = kHighest / divisor / 3000 * i * divisor;
      for (const uint32_t number : {i, kHighest - i, multiple, multiple + divisor - 1}) {
        if (number > kHighest) continue;
        ASSERT_EQ(fast.Quotient(number), number / divisor) << number << " / " << divisor;
      }
    }
  }
}

TEST(CudaLoops, FindsOffsetsInSmallAndLargeLoops) {
  // 2^31 iterations and more are divided in another way.
  for (const int64_t outermost : {int64_t{6}, int64_t{1} << 31}) {
    CudaLoops<2> loops;
    loops.Append(outermost, {1000, 1});
    loops.Append(5, {0, 7});
    loops.Append(3, {1, 0});
    ASSERT_EQ(loops.count(), outermost * 15);
    for (int64_t i = 0; i < 6; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        for (int64_t k = 0; k < 3; ++k) {
          const int64_t outer = outermost - 6 + i;
          int64_t offsets[2];
          loops.SetOffsets((outer * 5 + j) * 3 + k, offsets);
          ASSERT_EQ(offsets[0], outer * 1000 + k);
          ASSERT_EQ(offsets[1], outer + j * 7);
        }
      }
    }
  }
}

TEST(CudaLoops, HasOneIterationWithoutLoops) {
  const CudaLoops<1> loops;
  int64_t offsets[1] = {9};
  loops.SetOffsets(0, offsets);
  EXPECT_EQ(loops.count(), 1);
  EXPECT_EQ(offsets[0], 0);
}

CudaReduction ReductionOf(const std::vector<ReductionDim>& dims) {
  return CudaReduction(std::span<const ReductionDim>(dims));
}

TEST(CudaReduction, HasAWorkspaceForFewerRows) {
  int cut = 0;
  for (const int64_t rows : {2, 40, 300, 5000, 70000}) {
    for (const int64_t middle : {1, 7, 33, 1000}) {
      for (const int64_t last : {1, 5, 64, 3000}) {
        for (int reduced = 1; reduced < 8; ++reduced) {
          const auto plan_of = [&](int64_t size) {
            return ReductionOf({{size, (reduced & 1) != 0},
                                {middle, (reduced & 2) != 0},
                                {last, (reduced & 4) != 0}});
          };
          const int64_t bytes = plan_of(rows).WorkspaceBytes(8);
          for (const int64_t fewer : {rows, rows - 1, rows / 2, rows / 3, int64_t{1}}) {
            if (fewer == 0) continue;
            const CudaReduction plan = plan_of(fewer);
            ASSERT_EQ(plan.lanes * plan.tile, CudaReduction::kThreads);
            if (plan.parts == 1) continue;
            ++cut;
            ASSERT_LE(plan.parts * plan.result_count * 8, bytes)
                << rows << ", " << middle << ", " << last << ": " << fewer << " rows";
          }
        }
      }
    }
  }
  EXPECT_GT(cut, 100);
}

TEST(CudaReduction, ReducesNoElementsToEachResult) {
  const CudaReduction plan = ReductionOf({{0, true}, {5, false}});
  EXPECT_EQ(plan.result_count, 5);
  EXPECT_EQ(plan.reduced_count, 0);
  EXPECT_EQ(plan.parts, 1);
}

}  // namespace
}  // namespace skiff
