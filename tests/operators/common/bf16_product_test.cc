#include "operators/common/cpu/bf16_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/base/str_cat.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

struct Bf16ProductSizes {
  int64_t rows;
  int64_t depth;
  int64_t columns;
};

std::string Text(const Bf16ProductSizes& sizes) {
  return StrCat(sizes.rows, " rows, depth ", sizes.depth, ", ", sizes.columns, " columns");
}

// All numbers of rows of a group and of columns of a panel, odd depths, several blocks, and none.
std::vector<Bf16ProductSizes> AllSizes() {
  std::vector<Bf16ProductSizes> all = {{5, 0, 20}, {0, 5, 20}, {5, 7, 0}, {300, 2000, 40}};
  for (int64_t rows = 1; rows <= 30; ++rows) all.push_back({rows, 9, 35});
  for (int64_t columns = 1; columns <= 66; ++columns) all.push_back({7, 10, columns});
  for (const int64_t depth : {1, 2, 31, 32, 33, 511, 512, 513, 1100}) {
    all.push_back({17, depth, 48});
  }
  return all;
}

size_t At(int64_t i) { return static_cast<size_t>(i); }

// A product with memory for what it needs. A is [rows, depth], B [depth, columns].
class Product {
 public:
  // Small integers, whose sums are exact in float32 in any order, or others, which are rounded.
  explicit Product(const Bf16ProductSizes& sizes, bool is_exact = true)
      : sizes_(sizes),
        product_(sizes.depth, sizes.columns),
        packed_(At(product_.bytes()) / sizeof(uint32_t)),
        a_(Numbers(sizes.rows * sizes.depth, 3, is_exact)),
        b_(Numbers(sizes.depth * sizes.columns, 5, is_exact)) {
    Pack();
  }

  std::vector<BFloat16>& a() { return a_; }
  std::vector<BFloat16>& b() { return b_; }
  void Pack() { product_.Pack(b_.data(), sizes_.columns, 1, packed_.data()); }
  void PackByColumns() {
    std::fill(packed_.begin(), packed_.end(), 99);
    product_.Pack(Transposed(b_, sizes_.depth, sizes_.columns).data(), 1, sizes_.depth,
                  packed_.data());
  }

  // c, whose rows are kGap numbers apart and hold kBefore.
  template <typename C>
  std::vector<float> Multiply(Bf16Result<C> result = {}) {
    return Run({a_.data(), sizes_.depth, false}, sizes_.rows, result);
  }
  std::vector<float> MultiplyFirst(int64_t rows) {
    return Run({a_.data(), sizes_.depth, false}, rows, Bf16Result<BFloat16>());
  }
  std::vector<float> MultiplyTransposed() {
    const std::vector<BFloat16> transposed = Transposed(a_, sizes_.rows, sizes_.depth);
    return Run({transposed.data(), sizes_.rows, true}, sizes_.rows, Bf16Result<BFloat16>());
  }

  // The same by definition, rounded to C once.
  template <typename C>
  std::vector<float> Expected(const Bf16Result<C>& result = {}) const {
    std::vector<float> c(At(sizes_.rows * (sizes_.columns + kGap)), kBefore);
    for (int64_t i = 0; i < sizes_.rows; ++i) {
      for (int64_t j = 0; j < sizes_.columns; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < sizes_.depth; ++p) {
          sum += static_cast<double>(static_cast<float>(a_[At(i * sizes_.depth + p)])) *
                 static_cast<double>(static_cast<float>(b_[At(p * sizes_.columns + j)]));
        }
        const double bias =
            result.bias == nullptr ? 0.0 : double{static_cast<float>(result.bias[j])};
        const double all = double{result.alpha} * sum + double{result.beta} * kBefore + bias;
        c[At(i * (sizes_.columns + kGap) + j)] =
            static_cast<float>(static_cast<C>(static_cast<float>(all)));
      }
    }
    return c;
  }

  static constexpr int64_t kGap = 3;
  static constexpr float kBefore = 7;

 private:
  static std::vector<BFloat16> Numbers(int64_t count, int64_t seed, bool is_exact) {
    std::vector<BFloat16> numbers;
    for (int64_t i = 0; i < count; ++i) {
      numbers.emplace_back(is_exact ? static_cast<float>((i * 7 + seed) % 11 - 5)
                                    : static_cast<float>(std::sin(static_cast<double>(i + seed))));
    }
    return numbers;
  }
  static std::vector<BFloat16> Transposed(const std::vector<BFloat16>& matrix, int64_t rows,
                                          int64_t columns) {
    std::vector<BFloat16> transposed(matrix.size());
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        transposed[At(j * rows + i)] = matrix[At(i * columns + j)];
      }
    }
    return transposed;
  }
  template <typename C>
  std::vector<float> Run(const Bf16Matrix& a, int64_t rows, Bf16Result<C> result) {
    std::vector<C> c(At(rows * (sizes_.columns + kGap)), static_cast<C>(kBefore));
    std::vector<uint32_t> scratch(At(product_.ScratchBytes(rows)) / sizeof(uint32_t));
    result.c = c.data();
    result.stride = sizes_.columns + kGap;
    product_.Multiply(a, rows, packed_.data(), a.is_transposed ? scratch.data() : nullptr, result);
    std::vector<float> wide;
    for (const C& number : c) wide.push_back(static_cast<float>(number));
    return wide;
  }

  Bf16ProductSizes sizes_;
  Bf16Product product_;
  std::vector<uint32_t> packed_;
  std::vector<BFloat16> a_;
  std::vector<BFloat16> b_;
};

class Bf16ProductTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!UsesAvx512Bf16()) GTEST_SKIP() << "this processor has no products of bfloat16";
  }
};

TEST_F(Bf16ProductTest, IsTheProductAndLeavesTheRestAlone) {
  for (const Bf16ProductSizes& sizes : AllSizes()) {
    Product product(sizes);
    EXPECT_EQ(product.Multiply<BFloat16>(), product.Expected<BFloat16>()) << Text(sizes);
    EXPECT_EQ(product.Multiply<float>(), product.Expected<float>()) << Text(sizes);
  }
}

TEST_F(Bf16ProductTest, TakesTransposesAndColumns) {
  for (const Bf16ProductSizes& sizes : AllSizes()) {
    Product product(sizes);
    EXPECT_EQ(product.MultiplyTransposed(), product.Expected<BFloat16>()) << Text(sizes);
    product.PackByColumns();
    EXPECT_EQ(product.Multiply<BFloat16>(), product.Expected<BFloat16>()) << Text(sizes);
  }
}

TEST_F(Bf16ProductTest, ScalesAndAddsBeforeItRounds) {
  for (const Bf16ProductSizes& sizes : AllSizes()) {
    std::vector<BFloat16> bias;
    for (int64_t j = 0; j < sizes.columns; ++j) bias.emplace_back(static_cast<float>(j % 9) / 4);
    Product product(sizes);
    const Bf16Result<BFloat16> half = {.alpha = 0.5f, .beta = 3, .bias = bias.data()};
    EXPECT_EQ(product.Multiply(half), product.Expected(half)) << Text(sizes);
    const Bf16Result<float> wide = {.alpha = 0.5f, .beta = 3, .bias = bias.data()};
    EXPECT_EQ(product.Multiply(wide), product.Expected(wide)) << Text(sizes);
  }
}

TEST_F(Bf16ProductTest, HasTheBitsOfFewerRowsAndOfOneThread) {
  Product product({200, 1300, 70}, /*is_exact=*/false);
  const auto first_rows = [&](int64_t rows, int threads) {
    const harness::ThreadCount count(threads);
    return product.MultiplyFirst(rows);
  };
  const std::vector<float> all = first_rows(200, 3);
  for (const int threads : {1, 2, 5}) {
    for (const int64_t rows : {1, 13, 14, 15, 32, 85, 169, 200}) {
      EXPECT_EQ(first_rows(rows, threads),
                std::vector<float>(all.begin(), all.begin() + rows * (70 + Product::kGap)))
          << threads << " threads, " << rows << " rows";
    }
  }
}

TEST_F(Bf16ProductTest, TakesDenormalsAsZeros) {
  Product product({2, 3, 4});
  BFloat16 denormal;
  denormal.bits = 1;
  std::fill(product.a().begin(), product.a().end(), denormal);
  std::fill(product.b().begin(), product.b().end(), BFloat16(0x1p120f));
  product.Pack();
  for (const float number : product.Multiply<float>()) {
    EXPECT_TRUE(number == 0 || number == Product::kBefore) << number;
  }
}

TEST_F(Bf16ProductTest, KeepsWhatIsNotFiniteInItsRowsAndColumns) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Bf16ProductSizes sizes = {20, 9, 40};
  const int64_t row = sizes.columns + Product::kGap;
  Product product(sizes);
  const std::vector<float> finite = product.Multiply<BFloat16>();
  product.a()[At(3 * sizes.depth + 8)] = BFloat16(kInfinity);         // in row 3
  product.b()[At(2 * sizes.columns + 37)] = BFloat16(std::nanf(""));  // in column 37
  product.Pack();
  const std::vector<float> found = product.Multiply<BFloat16>();
  for (int64_t i = 0; i < sizes.rows * row; ++i) {
    if (i % row == 37) {
      EXPECT_TRUE(std::isnan(found[At(i)])) << i;
    } else if (i / row != 3 || i % row >= sizes.columns) {
      EXPECT_EQ(found[At(i)], finite[At(i)]) << i;
    } else {
      EXPECT_FALSE(std::isfinite(found[At(i)])) << i;
    }
  }
}

// Also where the last number of an odd depth begins a part of the sum.
TEST_F(Bf16ProductTest, AddsUpATransposedMatrixInTheSameOrder) {
  for (const int64_t depth : {9, 1024, 1025, 1027, 2049}) {
    Product product({15, depth, 33}, /*is_exact=*/false);
    EXPECT_EQ(product.MultiplyTransposed(), product.Multiply<BFloat16>()) << depth;
  }
}

// Of a long sum, the parts are summed from zero.
TEST_F(Bf16ProductTest, RoundsLessThanOneSum) {
  constexpr int64_t kDepth = 1 << 16;
  Product product({1, kDepth, 1});
  std::fill(product.a().begin(), product.a().end(), BFloat16(1));
  std::fill(product.b().begin(), product.b().end(), BFloat16(0.1f));
  product.Pack();
  const double tenth = static_cast<double>(static_cast<float>(BFloat16(0.1f)));
  EXPECT_NEAR(product.Multiply<float>()[0], kDepth * tenth, 0.03);
}

}  // namespace
}  // namespace skiff
