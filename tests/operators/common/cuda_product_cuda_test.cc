// Products of matrices on a device, beside sums on the host. Skipped if there is no device.
//
// On the emulated device this runs twice: by the kernel of our own, and by a stand-in for cuBLASLt,
// whose answers depend on k (cublas_lt_stand_in.h). kDepths meet all of them.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <type_traits>
#include <vector>

#include "framework/base/error.h"
#include "framework/tensor/tensor.h"
#include "memory/cuda_device.h"
#include "memory/device.h"
#include "memory/places.h"
#include "operators/common/cuda/cuda_product.h"
#include "operators/common/half.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/emulated_cuda.h"

namespace skiff {
namespace {

// With a workspace (odd) and without; none for matrices at odd addresses (5, 12, 40); none at all
// (6, 17), or none with a bias (30); and no sum.
constexpr int64_t kDepths[] = {1, 2, 5, 6, 7, 12, 17, 30, 40, 0};

// Elements from the begin of a matrix to the end of the last one of its batch.
int64_t SpanOf(int64_t rows, int64_t row_distance, int64_t columns, int64_t batches,
               int64_t stride) {
  if (rows == 0 || columns == 0) return 0;
  return (batches - 1) * stride + (rows - 1) * row_distance + columns;
}

template <typename T>
double NumberOf(T value) {
  return static_cast<double>(static_cast<WideType<T>>(value));
}

template <typename T>
T Rounded(double number) {
  return static_cast<T>(static_cast<WideType<T>>(number));
}

template <typename T>
bool HaveSameBits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

// The largest error of one rounding to T, relative to the number.
template <typename T>
double RoundingOf() {
  if constexpr (std::is_same_v<T, BFloat16>) return 0x1p-8;
  if constexpr (std::is_same_v<T, Float16>) return 0x1p-11;
  return std::numeric_limits<WideType<T>>::epsilon() / 2;
}

// A block of the device's memory whose values begin `offset` elements after an aligned address and
// end kGuards elements before its end.
template <typename T>
class OnDevice {
 public:
  OnDevice(const std::vector<T>& values, int64_t offset) : offset_(offset) {
    std::vector<T> padded(static_cast<size_t>(offset + kGuards) + values.size(), Guard());
    std::copy(values.begin(), values.end(), padded.begin() + offset);
    block_ = Tensor({static_cast<int64_t>(padded.size())}, kDTypeOf<T>, harness::CudaPlace());
    CopyTensor(Tensor::FromValues<T>(block_.shape(), padded), &block_);
  }
  T* data() { return block_.data<T>() + offset_; }
  // Returns the values. Fails the test if anything was written beside them.
  std::vector<T> Values() const {
    const std::vector<T> all = CopyToCpu(block_).ToVector<T>();
    const auto begin = all.begin() + offset_;
    const auto end = all.end() - kGuards;
    const auto is_guard = [](T value) { return NumberOf(value) == NumberOf(Guard()); };
    EXPECT_TRUE(std::all_of(all.begin(), begin, is_guard) && std::all_of(end, all.end(), is_guard))
        << "a write beside a block";
    return {begin, end};
  }

 private:
  static constexpr int64_t kGuards = 64;
  static T Guard() { return Rounded<T>(77); }

  int64_t offset_;
  Tensor block_;
};

// Calls function(batch, row, column, index) for each element of C.
template <class Function>
void ForEachOfC(const CudaProductShape& shape, const Function& function) {
  for (int64_t batch = 0; batch < shape.batches; ++batch) {
    for (int64_t i = 0; i < shape.m; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        function(batch, i, j, static_cast<size_t>(batch * shape.stride_c + i * shape.ldc + j));
      }
    }
  }
}

template <typename T>
std::vector<T> Drawn(int64_t count, std::mt19937* random) {
  std::uniform_real_distribution<double> numbers(-1, 1);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = Rounded<T>(numbers(*random));
  return values;
}

// The types of a product: of A and B, and of C and the bias.
template <typename Of, typename Into = Of>
struct Types {
  using T = Of;
  using Result = Into;
  using Product = CudaProduct<T, Result>;
};

template <typename TypesOfProduct>
class CudaProductTest : public testing::Test {
 protected:
  using T = typename TypesOfProduct::T;
  using Result = typename TypesOfProduct::Result;
  using Factor = WideType<T>;

  void SetUp() override {
    if (!HasCudaDevice()) GTEST_SKIP() << "no device";
    use_.emplace(&DeviceOf(harness::CudaPlace()));
    stream_ = DeviceOf(harness::CudaPlace()).MakeStream();
  }

  // Multiplies on the device and on the host, with each matrix `offset` elements after an aligned
  // address. Nothing but C may change, nor may memory beside the workspace. Without beta, C holds
  // NaN before. `shape` has all distances.
  void ExpectProduct(const CudaProductShape& shape, double alpha, double beta, int64_t offset) {
    std::mt19937 random(static_cast<uint32_t>(shape.k * 100 + shape.m));
    const int64_t a_rows = shape.transpose_a ? shape.k : shape.m;
    const int64_t a_columns = shape.transpose_a ? shape.m : shape.k;
    const int64_t b_rows = shape.transpose_b ? shape.n : shape.k;
    const int64_t b_columns = shape.transpose_b ? shape.k : shape.n;
    const auto a =
        Drawn<T>(SpanOf(a_rows, shape.lda, a_columns, shape.batches, shape.stride_a), &random);
    const auto b =
        Drawn<T>(SpanOf(b_rows, shape.ldb, b_columns, shape.batches, shape.stride_b), &random);
    auto c =
        Drawn<Result>(SpanOf(shape.m, shape.ldc, shape.n, shape.batches, shape.stride_c), &random);
    if (beta == 0) {
      ForEachOfC(shape, [&](int64_t, int64_t, int64_t, size_t at) {
        c[at] = Rounded<Result>(std::numeric_limits<double>::quiet_NaN());
      });
    }
    OnDevice<T> device_a(a, offset);
    OnDevice<T> device_b(b, offset);
    OnDevice<Result> device_c(c, offset);
    const auto bias = Drawn<Result>(shape.adds_bias ? shape.n : 0, &random);
    OnDevice<Result> device_bias(bias, offset);
    const CudaProduct<T, Result> product(shape);
    // As a plan aligns them.
    OnDevice<uint8_t> workspace(std::vector<uint8_t>(product.workspace_bytes()), 64);
    product.Run(static_cast<cudaStream_t>(stream_->handle()), device_a.data(), device_b.data(),
                device_c.data(), workspace.data(), static_cast<Factor>(alpha),
                static_cast<Factor>(beta), shape.adds_bias ? device_bias.data() : nullptr);
    stream_->Wait();
    workspace.Values();
    EXPECT_TRUE(HaveSameBits(device_a.Values(), a));
    EXPECT_TRUE(HaveSameBits(device_b.Values(), b));
    EXPECT_TRUE(HaveSameBits(device_bias.Values(), bias));
    std::vector<double> expected;
    for (const Result value : c) expected.push_back(NumberOf(value));
    ForEachOfC(shape, [&](int64_t batch, int64_t i, int64_t j, size_t at) {
      double sum = 0;
      for (int64_t p = 0; p < shape.k; ++p) {
        const int64_t at_a = shape.transpose_a ? p * shape.lda + i : i * shape.lda + p;
        const int64_t at_b = shape.transpose_b ? j * shape.ldb + p : p * shape.ldb + j;
        sum += NumberOf(a[static_cast<size_t>(batch * shape.stride_a + at_a)]) *
               NumberOf(b[static_cast<size_t>(batch * shape.stride_b + at_b)]);
      }
      expected[at] = alpha * sum + (beta == 0 ? 0 : beta * expected[at]) +
                     (shape.adds_bias ? NumberOf(bias[static_cast<size_t>(j)]) : 0);
    });
    const std::vector<Result> found = device_c.Values();
    // Of the sum, and of what becomes of it.
    const double of_sum =
        4 * static_cast<double>(shape.k + 2) * std::numeric_limits<Factor>::epsilon();
    for (size_t i = 0; i < found.size(); ++i) {
      const double bound = of_sum + std::abs(expected[i]) * RoundingOf<Result>();
      ASSERT_NEAR(NumberOf(found[i]), expected[i], bound)
          << "element " << i << ", m " << shape.m << ", n " << shape.n << ", k " << shape.k
          << ", transposes " << shape.transpose_a << shape.transpose_b << ", offset " << offset;
    }
  }

  std::optional<DeviceUse> use_;
  std::unique_ptr<DeviceStream> stream_;
};

using Products = testing::Types<Types<float>, Types<double>, Types<BFloat16>, Types<Float16>,
                                Types<BFloat16, float>, Types<Float16, float>>;
TYPED_TEST_SUITE(CudaProductTest, Products);

// Rows with gaps, of one matrix.
TYPED_TEST(CudaProductTest, IsRightForEachTransposition) {
  for (const int64_t k : kDepths) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        const CudaProductShape shape{.transpose_a = transpose_a,
                                     .transpose_b = transpose_b,
                                     .m = 9,
                                     .n = 13,
                                     .k = k,
                                     .lda = (transpose_a ? 9 : k) + 3,
                                     .ldb = (transpose_b ? k : 13) + 2,
                                     .ldc = 13 + 3};
        for (const int64_t offset : {0, 1}) this->ExpectProduct(shape, 1, 0, offset);
      }
    }
  }
}

TYPED_TEST(CudaProductTest, ScalesAndAdds) {
  for (const int64_t k : kDepths) {
    const CudaProductShape shape{.m = 4, .n = 3, .k = k, .lda = k + 1, .ldb = 3, .ldc = 3};
    this->ExpectProduct(shape, 0.5, -2, 0);
    this->ExpectProduct(shape, 1, 1, 1);
  }
}

// Rows of C with gaps, and without.
TYPED_TEST(CudaProductTest, AddsABias) {
  for (const int64_t k : kDepths) {
    CudaProductShape shape{
        .m = 9, .n = 13, .k = k, .lda = k + 3, .ldb = 13, .ldc = 13 + 3, .adds_bias = true};
    for (const int64_t offset : {0, 1}) {
      this->ExpectProduct(shape, 1, 0, offset);
      this->ExpectProduct(shape, 0.5, 0, offset);
    }
    shape.ldc = 13;
    this->ExpectProduct(shape, 1, 0, 0);
  }
}

TYPED_TEST(CudaProductTest, RefusesABiasForABatch) {
  const CudaProductShape shape{.m = 2, .n = 2, .k = 2, .batches = 2, .adds_bias = true};
  EXPECT_THROW(typename TypeParam::Product{shape}, Error);
}

// Half would be rounded twice.
TYPED_TEST(CudaProductTest, RefusesABiasBesideBeta) {
  using Result = typename TypeParam::Result;
  const typename TypeParam::Product product({.m = 2, .n = 2, .k = 2, .adds_bias = true});
  const Result bias[2] = {};
  EXPECT_THROW(product.Run(nullptr, nullptr, nullptr, nullptr, nullptr, 1, 1, bias), Error);
}

// All products of the second batch read one B.
TYPED_TEST(CudaProductTest, IsRightForABatch) {
  for (const int64_t k : kDepths) {
    if (k == 0) continue;
    CudaProductShape shape{.m = 5,
                           .n = 4,
                           .k = k,
                           .lda = k,
                           .ldb = 4,
                           .ldc = 4,
                           .batches = 3,
                           .stride_a = 5 * k + 4,
                           .stride_b = 4 * k,
                           .stride_c = 24};
    this->ExpectProduct(shape, 1, 0, 0);
    shape.stride_b = 0;
    this->ExpectProduct(shape, 1, 0, 0);
  }
}

TYPED_TEST(CudaProductTest, IsByTheLibraryWhereThereIsOne) {
  if (!harness::IsCudaEmulated()) GTEST_SKIP() << "whether there is a library isn't known";
  const bool has_libraries = harness::EmulationHasLibraries();
  const CudaProductShape with_workspace{.m = 9, .n = 13, .k = 7, .lda = 7, .ldb = 13, .ldc = 13};
  EXPECT_EQ(typename TypeParam::Product(with_workspace).is_by_cublas(), has_libraries);
  EXPECT_EQ(typename TypeParam::Product(with_workspace).workspace_bytes() > 0, has_libraries);
  const CudaProductShape unsupported{.m = 9, .n = 13, .k = 6, .lda = 6, .ldb = 13, .ldc = 13};
  EXPECT_FALSE(typename TypeParam::Product(unsupported).is_by_cublas());
}

}  // namespace
}  // namespace skiff

#else

TEST(CudaProductTest, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
