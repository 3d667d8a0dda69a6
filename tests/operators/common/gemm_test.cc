#include "operators/common/cpu/gemm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>
#include <vector>

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/op/op_def.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

// Of each matrix in a test, or more than it needs.
constexpr size_t kNumbers = 200'000;

// Small integers, whose sums are exact in float32 in any order.
template <typename T>
std::vector<T> Numbers(size_t count, int seed) {
  std::vector<T> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = static_cast<T>(static_cast<float>((i * 7 + seed) % 11) - 5);
  }
  return numbers;
}

// As numbers that can be compared.
template <typename T>
std::vector<WideType<T>> Wide(const std::vector<T>& numbers) {
  std::vector<WideType<T>> wide;
  for (const T& number : numbers) wide.push_back(static_cast<WideType<T>>(number));
  return wide;
}

int64_t Place(int64_t row, int64_t column, int64_t leading, bool transposed) {
  return transposed ? column * leading + row : row * leading + column;
}

// C = alpha * op(A) op(B) + beta * C, plus a bias that isn't nullptr, by definition, rounded once;
// leading dimensions must be given.
template <typename T>
void Expected(const GemmSpec& spec, const WideType<T>* a, const WideType<T>* b,
              const WideType<T>* bias, std::vector<T>* result) {
  const std::vector<WideType<T>> wide = Wide(*result);
  std::vector<double> c(wide.begin(), wide.end());
  int64_t count = 1;
  for (const GemmBatchDim& dim : spec.batch) count *= dim.size;
  std::vector<bool> scaled(kNumbers, false);
  for (int64_t index = 0; index < count; ++index) {
    int64_t at_a = 0, at_b = 0, at_c = 0, rest = index;
    for (const GemmBatchDim& dim : std::views::reverse(spec.batch.dims())) {
      at_a += rest % dim.size * dim.stride_a;
      at_b += rest % dim.size * dim.stride_b;
      at_c += rest % dim.size * dim.stride_c;
      rest /= dim.size;
    }
    for (int64_t i = 0; i < spec.m; ++i) {
      for (int64_t j = 0; j < spec.n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < spec.k; ++p) {
          sum += static_cast<double>(a[at_a + Place(i, p, spec.lda, spec.trans_a)]) *
                 static_cast<double>(b[at_b + Place(p, j, spec.ldb, spec.trans_b)]);
        }
        const auto place = static_cast<size_t>(at_c + i * spec.ldc + j);
        const double old = scaled[place] ? 1.0 : spec.beta;
        scaled[place] = true;
        c[place] = spec.alpha * sum + (old == 0 ? 0.0 : old * c[place]) +
                   (bias == nullptr ? 0.0 : static_cast<double>(bias[j]));
      }
    }
  }
  for (size_t i = 0; i < c.size(); ++i)
    (*result)[i] = static_cast<T>(static_cast<WideType<T>>(c[i]));
}

template <typename T>
class GemmTest : public testing::Test {
 protected:
  // Prepared for the product, for another one with as many columns, and for one with other rows
  // whose B stays the same.
  void Check(const GemmSpec& spec) {
    if (std::is_same_v<T, BFloat16> && !UsesAvx512Bf16()) {
      GTEST_SKIP() << "this processor, or SKIFF_MAX_ISA, has no products of bfloat16";
    }
    for (const int threads : {1, 2}) {
      const harness::ThreadCount count(threads);
      CheckPreparedFor(spec, /*rows_vary=*/false, /*constant_b=*/false, spec);
      CheckPreparedFor(WithOtherSizes(spec), /*rows_vary=*/true, /*constant_b=*/false, spec);
      GemmSpec other_rows = spec;
      if (spec.batch.empty() && !spec.trans_a) other_rows.m = WithOtherSizes(spec).m;
      CheckPreparedFor(other_rows, /*rows_vary=*/true, /*constant_b=*/true, spec);
    }
  }

 private:
  // A product with as many columns. One of bfloat16 has memory for smaller ones alone.
  static GemmSpec WithOtherSizes(const GemmSpec& spec) {
    if (!std::is_same_v<T, BFloat16>) {
      return {.m = 2, .n = spec.n, .k = 2, .adds_bias = spec.adds_bias};
    }
    GemmSpec larger = spec;
    if (!spec.batch.empty()) {
      ++larger.batch.back().size;
      return larger;
    }
    larger.m += 3;
    larger.k += 5;
    larger.lda += 5;
    larger.ldb += 5;
    return larger;
  }

  void CheckPreparedFor(const GemmSpec& prepared, bool rows_vary, bool constant_b,
                        const GemmSpec& spec) {
    const std::vector<T> a = Numbers<T>(kNumbers, 1);
    const std::vector<T> b = Numbers<T>(kNumbers, 2);
    std::vector<T> c = Numbers<T>(kNumbers, 3);
    std::vector<T> expected = c;
    const std::vector<T> numbers = Numbers<T>(kNumbers, 4);
    const T* bias = spec.adds_bias ? numbers.data() : nullptr;
    Expected(spec, Wide(a).data(), Wide(b).data(), bias == nullptr ? nullptr : Wide(numbers).data(),
             &expected);
    if (spec.beta == 0) PoisonWritten(spec, &c);
    PrepareContext context(op_, def_, {}, {});
    context.set_rows_vary(rows_vary);
    context.set_constant_inputs({constant_b});
    const Gemm<T> gemm(prepared, context, /*prepacked_b=*/-1, constant_b ? 0 : -1);
    EXPECT_TRUE(gemm.takes_other_sizes() || !rows_vary);
    EXPECT_EQ(context.derived_forms().size(), constant_b && IsOneProduct(prepared) ? 1u : 0u);
    std::vector<std::vector<char>> memory;
    const auto room = [&](int64_t bytes) -> void* {
      memory.emplace_back(static_cast<size_t>(bytes) + 64);
      auto address = reinterpret_cast<uintptr_t>(memory.back().data());
      return reinterpret_cast<void*>((address + 63) / 64 * 64);
    };
    KernelContext run;
    for (const int64_t bytes : context.workspace_bytes()) run.workspaces.push_back(room(bytes));
    Tensor input = Tensor::FromValues<T>({static_cast<int64_t>(b.size())}, b);
    run.inputs = {&input};
    for (const DerivedForm& form : context.derived_forms()) {
      run.derived_forms.push_back(room(form.bytes));
      form.refresh(run, run.derived_forms.back());
    }
    gemm.Run(run, spec, a.data(), b.data(), c.data(), bias);
    EXPECT_EQ(Wide(c), Wide(expected));
  }

  // Without beta, what C holds must not matter.
  static void PoisonWritten(const GemmSpec& spec, std::vector<T>* c) {
    if (!spec.batch.empty()) return;
    for (int64_t i = 0; i < spec.m * spec.ldc; ++i) {
      if (i % spec.ldc < spec.n) (*c)[static_cast<size_t>(i)] = static_cast<T>(std::nanf(""));
    }
  }

  Op op_{"gemm"};
  OpDef def_;
};

using Types = testing::Types<float, double, BFloat16>;
TYPED_TEST_SUITE(GemmTest, Types);

TYPED_TEST(GemmTest, MultipliesInsideLargerMatrices) {
  this->Check({.m = 5, .n = 7, .k = 9, .lda = 12, .ldb = 10, .ldc = 8});
}

TYPED_TEST(GemmTest, TransposesEitherFactor) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      this->Check(
          {.m = 6, .n = 5, .k = 7, .trans_a = a, .trans_b = b, .lda = 9, .ldb = 8, .ldc = 5});
    }
  }
}

TYPED_TEST(GemmTest, ScalesAndAdds) {
  this->Check({.m = 4, .n = 3, .k = 5, .alpha = 2, .lda = 5, .ldb = 3, .ldc = 3});
  this->Check({.m = 4, .n = 3, .k = 5, .beta = 1, .lda = 5, .ldb = 3, .ldc = 3});
  this->Check({.m = 4, .n = 3, .k = 5, .alpha = -1, .beta = 2, .lda = 5, .ldb = 3, .ldc = 3});
}

// Of rows, columns and terms.
TYPED_TEST(GemmTest, MultipliesSeveralBlocks) {
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      this->Check({.m = 90,
                   .n = 530,
                   .k = 300,
                   .trans_a = a,
                   .trans_b = b,
                   .beta = b ? 1.0 : 0.0,
                   .lda = a ? 90 : 300,
                   .ldb = b ? 300 : 530,
                   .ldc = 540});
    }
  }
}

// oneDNN without AVX-512 doesn't get these.
TYPED_TEST(GemmTest, TransposesRowsOf2KiB) {
  this->Check({.m = 512, .n = 3, .k = 5, .trans_a = true, .lda = 512, .ldb = 3, .ldc = 3});
  this->Check({.m = 3, .n = 512, .k = 5, .trans_a = true, .lda = 3, .ldb = 512, .ldc = 512});
}

TYPED_TEST(GemmTest, BatchesWithStrides) {
  this->Check({.m = 4,
               .n = 3,
               .k = 5,
               .lda = 5,
               .ldb = 3,
               .ldc = 3,
               .batch = {{2, 100, 50, 40}, {3, 20, 0, 12}}});
}

TYPED_TEST(GemmTest, SumsOverBatchDimsWithoutOwnResult) {
  this->Check({.m = 4,
               .n = 3,
               .k = 5,
               .alpha = 2,
               .beta = 3,
               .lda = 5,
               .ldb = 3,
               .ldc = 3,
               .batch = {{2, 60, 45, 0}, {3, 20, 15, 12}}});
}

TYPED_TEST(GemmTest, FoldsABatchIntoRowsOrTerms) {
  const GemmSpec rows{
      .m = 4, .n = 3, .k = 5, .lda = 5, .ldb = 3, .ldc = 3, .batch = {{6, 20, 0, 12}}};
  EXPECT_EQ(SimplifyGemm(rows).m, 24);
  EXPECT_TRUE(SimplifyGemm(rows).batch.empty());
  this->Check(rows);
  const GemmSpec terms{.m = 4,
                       .n = 3,
                       .k = 5,
                       .trans_a = true,
                       .lda = 4,
                       .ldb = 3,
                       .ldc = 3,
                       .batch = {{6, 20, 15, 0}}};
  EXPECT_EQ(SimplifyGemm(terms).k, 30);
  EXPECT_TRUE(SimplifyGemm(terms).batch.empty());
  this->Check(terms);
}

TYPED_TEST(GemmTest, ScalesOnlyWhereThereAreNoTerms) {
  this->Check({.m = 4, .n = 3, .k = 0, .beta = 2, .lda = 1, .ldb = 3, .ldc = 3});
}

// Of one block, of several, and of none.
TYPED_TEST(GemmTest, AddsABiasToEachRow) {
  for (const int64_t k : {int64_t{7}, int64_t{300}, int64_t{0}}) {
    for (const bool a : {false, true}) {
      GemmSpec spec{.m = 90,
                    .n = 530,
                    .k = k,
                    .trans_a = a,
                    .lda = a ? 90 : std::max<int64_t>(k, 1),
                    .ldb = 530,
                    .ldc = 540,
                    .adds_bias = true};
      this->Check(spec);
      spec.beta = 2;
      this->Check(spec);
    }
  }
}

TEST(Gemm, RefusesABiasThatIsNotThereAndOneForABatchOrAScaledProduct) {
  const Op op("gemm");
  const OpDef def;
  PrepareContext context(op, def, {}, {});
  const GemmSpec without{.m = 2, .n = 3, .k = 4};
  GemmSpec with = without;
  with.adds_bias = true;
  const std::vector<float> a(12);
  std::vector<float> c(6);
  EXPECT_THROW(Gemm<float>(with, context).Run({}, a.data(), a.data(), c.data()), Error);
  EXPECT_THROW(Gemm<float>(without, context).Run({}, a.data(), a.data(), c.data(), a.data()),
               Error);
  GemmSpec scaled = with;
  scaled.alpha = 2;
  EXPECT_THROW(SimplifyGemm(scaled), Error);
  with.batch = {{6, 20, 15, 12}};
  EXPECT_THROW(SimplifyGemm(with), Error);
}

TEST(Gemm, KnowsWhatIsOneProduct) {
  const GemmSpec one{.m = 4, .n = 3, .k = 5};
  EXPECT_TRUE(IsOneProduct(one));
  GemmSpec rows = one;  // one B for all: more rows
  rows.batch = {{6, 20, 0, 12}};
  EXPECT_TRUE(IsOneProduct(rows));
  GemmSpec several = one;
  several.batch = {{6, 20, 15, 12}};
  EXPECT_FALSE(IsOneProduct(several));
  GemmSpec none = one;
  none.batch = {{0, 20, 15, 12}};
  EXPECT_FALSE(IsOneProduct(none));
  EXPECT_FALSE(IsOneProduct({.m = 0, .n = 3, .k = 5}));
  EXPECT_FALSE(IsOneProduct({.m = 4, .n = 0, .k = 5}));
  EXPECT_FALSE(IsOneProduct({.m = 4, .n = 3, .k = 0}));
}

TEST(Gemm, PrepacksOneProductOfFloatsOnly) {
  const Op op("gemm");
  const OpDef def;
  PrepareContext context(op, def, {}, {});
  const GemmSpec one{.m = 4, .n = 3, .k = 5};
  EXPECT_THROW(Gemm<double>(one, context, 1), Error);
  GemmSpec several = one;
  several.batch = {{6, 20, 15, 12}};
  EXPECT_THROW(Gemm<float>(several, context, 1), Error);
}

TEST(Gemm, RefusesMoreColumnsThanItHasRoomFor) {
  const Op op("gemm");
  const OpDef def;
  PrepareContext context(op, def, {}, {});
  const GemmSpec prepared{.m = 4, .n = 3, .k = 5};
  const GemmSpec wider{.m = 4, .n = 4, .k = 5};
  const std::vector<float> a(20);
  std::vector<float> c(16);
  const Gemm<float> fixed(prepared, context);
  EXPECT_THROW(fixed.Run({}, wider, a.data(), a.data(), c.data()), Error);
  context.set_rows_vary(true);
  const Gemm<float> varying(prepared, context);
  EXPECT_THROW(varying.Run({}, wider, a.data(), a.data(), c.data()), Error);
}

TEST(Gemm, RefusesLargerProductsOfBf16ThanItHasRoomFor) {
  if (!UsesAvx512Bf16()) GTEST_SKIP() << "this processor has no products of bfloat16";
  const Op op("gemm");
  const OpDef def;
  PrepareContext context(op, def, {}, {});
  const GemmSpec prepared{.m = 4, .n = 3, .k = 5};
  const Gemm<BFloat16> gemm(prepared, context);
  const std::vector<BFloat16> a(24);
  std::vector<BFloat16> c(20);
  GemmSpec taller = prepared;
  ++taller.m;
  GemmSpec deeper = prepared;
  ++deeper.k;
  GemmSpec transposed = prepared;
  transposed.trans_a = true;
  for (const GemmSpec& other : {taller, deeper, transposed}) {
    EXPECT_THROW(gemm.Run({}, other, a.data(), a.data(), c.data()), Error);
  }
}

TEST(Gemm, RefusesRowsThatOverlap) {
  EXPECT_THROW(SimplifyGemm({.m = 2, .n = 3, .k = 4, .lda = 3}), Error);
  EXPECT_THROW(SimplifyGemm({.m = -1, .n = 3, .k = 4}), Error);
}

}  // namespace
}  // namespace skiff
