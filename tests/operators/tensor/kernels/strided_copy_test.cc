// The ops cover copies of whole tensors. These tests cover the parts that copies consist of, and
// tensors too large for the cases.
#include "operators/tensor/kernels/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "framework/op/registry.h"
#include "framework/tensor/tensor.h"
#include "operators/tensor/kernels/stream_copy.h"
#include "operators/tensor/kernels/transpose_tile.h"
#include "tests/harness/prepared_op.h"

namespace skiff {
namespace {

// Cache lines begin at any distance from the ends of a row.
TEST(StreamRow, CopiesWhatItIsAskedForAndNoMore) {
  std::vector<uint8_t> source(2000);
  std::iota(source.begin(), source.end(), uint8_t{1});
  for (const int64_t bytes : {0, 1, 63, 64, 130, 255, 256, 257, 319, 320, 1024, 1500}) {
    for (int64_t offset = 0; offset < 66; offset += 5) {
      std::vector<uint8_t> target(2000, 0);
      StreamRow(source.data() + 3, target.data() + offset, bytes);
      EndStreams();
      std::vector<uint8_t> expected(2000, 0);
      std::copy_n(source.begin() + 3, bytes, expected.begin() + offset);
      ASSERT_EQ(target, expected) << bytes << " bytes at " << offset;
    }
  }
}

TEST(TransposeTile, WritesEveryWordOfTheTile) {
  constexpr int64_t kStride = 80;
  std::vector<uint32_t> source(kStride * kStride);
  std::iota(source.begin(), source.end(), 1u);
  for (const bool streams : {false, true}) {
    for (const int64_t rows : {1, 7, 16, 33, 64}) {
      for (const int64_t columns : {1, 8, 15, 32, 49}) {
        // At a cache line, and between two.
        for (const int64_t offset : {0, 3}) {
          alignas(64) static uint32_t target[kStride * kStride + 3];
          std::fill(std::begin(target), std::end(target), 0u);
          TransposeTile(source.data(), kStride, target + offset, kStride, rows, columns, streams);
          EndStreams();
          for (int64_t column = 0; column < kStride; ++column) {
            for (int64_t row = 0; row < kStride; ++row) {
              const uint32_t expected =
                  row < rows && column < columns ? source[row * kStride + column] : 0;
              ASSERT_EQ(target[offset + column * kStride + row], expected)
                  << rows << " x " << columns << " at " << row << ", " << column;
            }
          }
        }
      }
    }
  }
}

// Tensors of 32 MiB and more, whose storage begins at a cache line: they are written past the
// caches. Rows of the target are whole vectors, columns of the source aren't.
TEST(StridedCopy, TransposesWhatFitsNoCache) {
  constexpr int64_t kRows = 2912;
  constexpr int64_t kColumns = 2900;
  static_assert(kRows * kColumns * sizeof(int32_t) >= kLeastStreamedBytes);
  Tensor source({kRows, kColumns}, DType::kInt32);
  std::iota(source.data<int32_t>(), source.data<int32_t>() + source.element_count(), 0);
  Tensor target({kColumns, kRows}, DType::kInt32);
  StridedCopy(std::vector<int64_t>{kColumns, kRows}, std::vector<int64_t>{1, kColumns},
              std::vector<int64_t>{kRows, 1}, 4)
      .Run(source.raw_data(), target.raw_data());
  int64_t wrong = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column)
      wrong += target.data<int32_t>()[column * kRows + row] != row * kColumns + column;
  }
  EXPECT_EQ(wrong, 0);
}

// The first two of three axes change places; rows stay whole.
TEST(StridedCopy, MovesRowsThatFitNoCache) {
  constexpr int64_t kOuter = 130;
  constexpr int64_t kInner = 70;
  constexpr int64_t kRow = 1000;
  static_assert(kOuter * kInner * kRow * sizeof(uint32_t) >= kLeastStreamedBytes);
  std::vector<uint32_t> source(kOuter * kInner * kRow);
  std::iota(source.begin(), source.end(), 0u);
  std::vector<uint32_t> target(source.size());
  StridedCopy(std::vector<int64_t>{kInner, kOuter, kRow},
              std::vector<int64_t>{kRow, kInner * kRow, 1},
              std::vector<int64_t>{kOuter * kRow, kRow, 1}, 4)
      .Run(source.data(), target.data());
  int64_t wrong = 0;
  for (int64_t i = 0; i < kOuter; ++i) {
    for (int64_t j = 0; j < kInner; ++j) {
      for (int64_t k = 0; k < kRow; ++k)
        wrong += target[(j * kOuter + i) * kRow + k] != (i * kInner + j) * kRow + k;
    }
  }
  EXPECT_EQ(wrong, 0);
}

// Rows of 32 MiB and more in all, by index.
class LargeRows : public ::testing::Test {
 protected:
  static constexpr int64_t kCount = 8500;
  static constexpr int64_t kWidth = 1003;
  static constexpr int64_t kTableRows = 50;
  static_assert(kCount * kWidth * sizeof(float) >= kLeastStreamedBytes);

  LargeRows() : table_({kTableRows, kWidth}, DType::kFloat32), indices_({kCount}, DType::kInt64) {
    std::iota(table_.data<float>(), table_.data<float>() + table_.element_count(), 0.0f);
    for (int64_t i = 0; i < kCount; ++i) indices_.data<int64_t>()[i] = i * 7 % kTableRows;
  }

  void ExpectRowsOf(const Op& op, const harness::NamedTensors& inputs) {
    harness::PreparedOp prepared(DefaultOpRegistry(), op, inputs);
    prepared.Run();
    const Tensor out = prepared.Outputs().at("out");
    int64_t wrong = 0;
    for (int64_t i = 0; i < kCount; ++i) {
      const float* expected = table_.data<float>() + i * 7 % kTableRows * kWidth;
      wrong += !std::equal(expected, expected + kWidth, out.data<float>() + i * kWidth);
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(prepared.Faults().empty());
  }

  Tensor table_;
  Tensor indices_;
};

TEST_F(LargeRows, AreGathered) {
  Op op("gather");
  op.SetInput("X", {"x"}).SetInput("Index", {"i"}).SetOutput("Out", {"out"});
  ExpectRowsOf(op, {{"x", table_}, {"i", indices_}});
}

TEST_F(LargeRows, AreLookedUp) {
  Op op("lookup_table_v2");
  op.SetInput("W", {"w"}).SetInput("Ids", {"i"}).SetOutput("Out", {"out"});
  ExpectRowsOf(op, {{"w", table_}, {"i", indices_}});
}

}  // namespace
}  // namespace skiff
