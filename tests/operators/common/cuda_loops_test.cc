// What CUDA kernels know about loops and reductions, on the host: no device is needed.
#include "operators/common/cuda/cuda_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "operators/common/cuda/cuda_fold_view.h"
#include "operators/common/fast_divisor.h"

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
        uint32_t quotient = number;
        ASSERT_EQ(fast.TakeRemainder(&quotient), number % divisor) << number << " / " << divisor;
        ASSERT_EQ(quotient, number / divisor);
      }
    }
  }
}

TEST(FastDivisor, DividesByNumbersLargerThanAllToZero) {
  for (const int64_t divisor : {int64_t{1} << 31, (int64_t{1} << 32) + 1, int64_t{1} << 62}) {
    const FastDivisor fast(divisor);
    for (const uint32_t number : {0U, 1U, 0x40000000U, 0x7FFFFFFFU}) {
      uint32_t quotient = number;
      EXPECT_EQ(fast.TakeRemainder(&quotient), number) << number << " / " << divisor;
      EXPECT_EQ(quotient, 0U) << number << " / " << divisor;
    }
  }
}

TEST(FastDivisor, DividesByOneByDefault) {
  uint32_t number = 0x7FFFFFFF;
  EXPECT_EQ(FastDivisor().TakeRemainder(&number), 0U);
  EXPECT_EQ(number, 0x7FFFFFFFU);
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

CudaFoldView ViewOf(const std::vector<int64_t>& dims, int reduced) {
  CudaFoldView view;
  for (size_t i = dims.size(); i-- > 0;) view.AddOutside(dims[i], (reduced >> i & 1) != 0);
  return view;
}

TEST(CudaFoldView, FindsEachElementOnce) {
  const std::vector<int64_t> dims = {3, 1, 4, 2, 5};
  for (int reduced = 0; reduced < 32; ++reduced) {
    const CudaFoldView view = ViewOf(dims, reduced);
    ASSERT_EQ(view.outputs * view.elements, 120);
    std::vector<int> found(120);
    for (int64_t output = 0; output < view.outputs; ++output) {
      for (int64_t i = 0; i < view.elements; ++i) {
        ++found[static_cast<size_t>(view.kept.PlaceOf(output) + view.reduced.PlaceOf(i))];
      }
    }
    EXPECT_EQ(std::ranges::count(found, 1), 120) << reduced;
  }
}

TEST(CudaFoldCut, HasAWorkspaceForFewerRows) {
  int cut_views = 0;
  for (const int64_t rows : {2, 40, 300, 5000, 70000}) {
    for (const int64_t middle : {1, 7, 33, 1000}) {
      for (const int64_t last : {1, 5, 64, 3000}) {
        for (int reduced = 1; reduced < 8; ++reduced) {
          for (const int64_t fewer : {rows, rows - 1, rows / 2, rows / 3, int64_t{1}}) {
            if (fewer == 0) continue;
            const CudaFoldView view = ViewOf({fewer, middle, last}, reduced);
            const CudaFoldCut cut(view);
            ASSERT_EQ(cut.threads * cut.slots, CudaFoldCut::kThreads);
            ASSERT_GE(cut.tiles * cut.slots, view.outputs);
            ASSERT_GE(cut.parts * cut.part, view.elements);
            if (cut.parts == 1) continue;
            ++cut_views;
            ASSERT_LE(cut.parts * view.outputs, CudaFoldCut::MostResults(rows * middle * last))
                << rows << ", " << middle << ", " << last << ": " << fewer << " rows";
          }
        }
      }
    }
  }
  EXPECT_GT(cut_views, 100);
}

TEST(CudaFoldCut, ReducesNoElementsToEachOutput) {
  const CudaFoldView view(0, 5);
  EXPECT_EQ(view.outputs, 5);
  EXPECT_EQ(view.elements, 0);
  EXPECT_EQ(CudaFoldCut(view).parts, 1);
}

}  // namespace
}  // namespace skiff
