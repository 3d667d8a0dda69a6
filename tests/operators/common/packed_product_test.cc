// The BUILD file runs this once for each value of SKIFF_MAX_ISA.
#include "operators/common/cpu/packed_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/libraries/kernel_libraries.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

// A product of matrices of small integers, whose sums are exact in float32 in any order, and of
// others, which are rounded.
template <typename T>
class Product {
 public:
  Product(int64_t rows, int64_t depth, int64_t columns, bool is_exact = true)
      : rows_(rows), depth_(depth), columns_(columns), product_(depth, columns) {
    for (int64_t i = 0; i < rows * depth; ++i) a_.push_back(Number(i, 3, is_exact));
    for (int64_t i = 0; i < depth * columns; ++i) b_.push_back(Number(i, 5, is_exact));
    packed_.resize(static_cast<size_t>(product_.bytes()) / sizeof(T));
    product_.Pack(b_.data(), columns, 1, packed_.data());
  }

  // C, whose rows are `gap` numbers apart and hold `before`.
  std::vector<T> Multiply(bool add = false, T before = 7, int64_t gap = 3,
                          const T* bias = nullptr) const {
    std::vector<T> c(static_cast<size_t>(rows_ * (columns_ + gap)), before);
    product_.Multiply({.first = a_.data(), .stride = depth_}, rows_, packed_.data(), add, c.data(),
                      columns_ + gap, bias);
    return c;
  }
  void MultiplyFirst(int64_t rows, T* c) const {
    product_.Multiply({.first = a_.data(), .stride = depth_}, rows, packed_.data(), false, c,
                      columns_);
  }
  // From pointers to the rows of A, in reverse order.
  std::vector<T> MultiplyEach() const {
    std::vector<const T*> each;
    for (int64_t i = rows_ - 1; i >= 0; --i) each.push_back(a_.data() + i * depth_);
    std::vector<T> c(static_cast<size_t>(rows_ * columns_));
    product_.Multiply({.each = each.data()}, rows_, packed_.data(), false, c.data(), columns_);
    return c;
  }
  std::vector<T> MultiplyTransposed() const {
    std::vector<T> transposed(a_.size()), c(static_cast<size_t>(rows_ * columns_));
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t p = 0; p < depth_; ++p) transposed[At(p * rows_ + i)] = a_[At(i * depth_ + p)];
    }
    product_.MultiplyTransposed({.first = transposed.data(), .stride = rows_}, rows_,
                                packed_.data(), false, c.data(), columns_);
    return c;
  }
  // Packs the transpose of B.
  void PackByColumns() {
    std::vector<T> transposed(b_.size());
    for (int64_t p = 0; p < depth_; ++p) {
      for (int64_t j = 0; j < columns_; ++j)
        transposed[At(j * depth_ + p)] = b_[At(p * columns_ + j)];
    }
    std::fill(packed_.begin(), packed_.end(), T{99});
    product_.Pack(transposed.data(), 1, depth_, packed_.data());
  }

  double Expected(int64_t row, int64_t column) const {
    double sum = 0;
    for (int64_t p = 0; p < depth_; ++p) {
      sum += static_cast<double>(a_[At(row * depth_ + p)]) *
             static_cast<double>(b_[At(p * columns_ + column)]);
    }
    return sum;
  }
  // Rows that are `gap` apart, with `before` between them, and added to each element if `add`.
  std::vector<T> AllExpected(bool add = false, T before = 7, int64_t gap = 3) const {
    std::vector<T> c(static_cast<size_t>(rows_ * (columns_ + gap)), before);
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < columns_; ++j)
        c[At(i * (columns_ + gap) + j)] = static_cast<T>(Expected(i, j)) + (add ? before : T{0});
    }
    return c;
  }

 private:
  static size_t At(int64_t i) { return static_cast<size_t>(i); }
  static T Number(int64_t i, int64_t seed, bool is_exact) {
    return is_exact ? static_cast<T>((i * 7 + seed) % 11 - 5)
                    : static_cast<T>(std::sin(static_cast<double>(i * 13 + seed)));
  }

  int64_t rows_;
  int64_t depth_;
  int64_t columns_;
  std::vector<T> a_;
  std::vector<T> b_;
  std::vector<T> packed_;
  PackedProduct<T> product_;
};

template <typename T>
class PackedProductTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    OpRegistry registry;
    SetKernelLibraries(registry);  // limits the instruction set
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(PackedProductTest, Types);

struct PackedProductSizes {
  int64_t rows;
  int64_t depth;
  int64_t columns;
};

// One row, all sizes of a group of rows and of two, one block and three; parts of a vector and of a
// panel, several panels; one part of the depth, and three.
std::vector<PackedProductSizes> AllSizes() {
  std::vector<PackedProductSizes> all;
  for (int64_t rows = 1; rows <= 29; ++rows) all.push_back({rows, 9, 35});
  for (int64_t columns = 1; columns <= 66; ++columns) all.push_back({7, 10, columns});
  for (int64_t rows : {1, 6, 32, 168, 169, 400}) all.push_back({rows, 600, 70});
  for (int64_t depth : {1, 7, 8, 255, 256, 257}) all.push_back({32, depth, 48});
  return all;
}

std::string Text(const PackedProductSizes& sizes) {
  return std::to_string(sizes.rows) + " rows, depth " + std::to_string(sizes.depth) + ", " +
         std::to_string(sizes.columns) + " columns";
}

TYPED_TEST(PackedProductTest, IsTheProductAndLeavesTheRestAlone) {
  for (const PackedProductSizes& sizes : AllSizes()) {
    const Product<TypeParam> product(sizes.rows, sizes.depth, sizes.columns);
    EXPECT_EQ(product.Multiply(), product.AllExpected()) << Text(sizes);
    EXPECT_EQ(product.Multiply(/*add=*/true), product.AllExpected(/*add=*/true)) << Text(sizes);
  }
}

TYPED_TEST(PackedProductTest, TakesRowsFromPointersTransposesAndColumns) {
  for (const PackedProductSizes& sizes : AllSizes()) {
    Product<TypeParam> product(sizes.rows, sizes.depth, sizes.columns);
    const std::vector<TypeParam> expected = product.AllExpected(false, 0, 0);
    EXPECT_EQ(product.MultiplyTransposed(), expected) << Text(sizes);
    std::vector<TypeParam> reversed;
    for (int64_t i = sizes.rows - 1; i >= 0; --i) {
      reversed.insert(reversed.end(), expected.begin() + i * sizes.columns,
                      expected.begin() + (i + 1) * sizes.columns);
    }
    EXPECT_EQ(product.MultiplyEach(), reversed) << Text(sizes);
    product.PackByColumns();
    EXPECT_EQ(product.Multiply(), product.AllExpected()) << Text(sizes);
  }
}

// With the bits of an addition that follows.
TYPED_TEST(PackedProductTest, AddsABiasToEachRow) {
  constexpr int64_t kGap = 3;
  std::vector<PackedProductSizes> all = AllSizes();
  all.push_back({5, 0, 20});
  for (const PackedProductSizes& sizes : all) {
    std::vector<TypeParam> bias;
    for (int64_t j = 0; j < sizes.columns; ++j)
      bias.push_back(static_cast<TypeParam>(std::cos(static_cast<double>(j))));
    const Product<TypeParam> product(sizes.rows, sizes.depth, sizes.columns, /*is_exact=*/false);
    for (const bool add : {false, true}) {
      std::vector<TypeParam> expected = product.Multiply(add, 7, kGap);
      for (size_t i = 0; i < expected.size(); ++i) {
        const size_t column = i % static_cast<size_t>(sizes.columns + kGap);
        if (column < bias.size()) expected[i] += bias[column];
      }
      EXPECT_EQ(product.Multiply(add, 7, kGap, bias.data()), expected) << Text(sizes);
    }
  }
}

TYPED_TEST(PackedProductTest, IsZeroWithoutDepth) {
  const Product<TypeParam> product(5, 0, 20);
  EXPECT_EQ(product.Multiply(), product.AllExpected());
  EXPECT_EQ(product.Multiply(/*add=*/true), product.AllExpected(/*add=*/true));
}

TYPED_TEST(PackedProductTest, WritesNothingWithoutRowsOrColumns) {
  EXPECT_EQ((Product<TypeParam>(4, 5, 0).Multiply()), std::vector<TypeParam>(12, 7));
  const Product<TypeParam> product(4, 5, 20);
  std::vector<TypeParam> c(80, 7);
  product.MultiplyFirst(0, c.data());
  EXPECT_EQ(c, std::vector<TypeParam>(80, 7));
}

TYPED_TEST(PackedProductTest, HasTheBitsOfFewerRowsAndOfOneThread) {
  const Product<TypeParam> product(200, 600, 70, /*is_exact=*/false);
  const auto first_rows = [&](int64_t rows, int threads) {
    const harness::ThreadCount count(threads);
    std::vector<TypeParam> c(static_cast<size_t>(rows * 70));
    product.MultiplyFirst(rows, c.data());
    return c;
  };
  const std::vector<TypeParam> all = first_rows(200, 3);
  for (int threads : {1, 2, 5}) {
    for (int64_t rows : {1, 6, 7, 32, 85, 169, 200}) {
      EXPECT_EQ(first_rows(rows, threads),
                std::vector<TypeParam>(all.begin(), all.begin() + rows * 70))
          << threads << " threads, " << rows << " rows";
    }
  }
}

// Of a long sum, the parts are summed from zero: this one is off by 0.023, and would be by 4.05 if
// all 65,536 rows were added up one by one.
TEST(PackedProduct, RoundsLessThanOneSum) {
  constexpr int64_t kRows = 1 << 16;
  const PackedProduct<float> product(kRows, 1);
  const std::vector<float> ones(kRows, 1), tenths(kRows, 0.1f);
  std::vector<float> packed(static_cast<size_t>(product.bytes()) / sizeof(float));
  product.Pack(tenths.data(), 1, 1, packed.data());
  float c = 0;
  product.Multiply({.first = ones.data(), .stride = kRows}, 1, packed.data(), false, &c, 1);
  EXPECT_NEAR(c, kRows * static_cast<double>(0.1f), 0.03);
}

}  // namespace
}  // namespace skiff
