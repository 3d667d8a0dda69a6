// Products of matrices on a device, beside sums on the host. Skipped if there is no device.
//
// On the emulated device this runs twice: by the kernel of our own, and by a stand-in for cuBLASLt,
// whose answers depend on k. kDepths meet all of them.
#include <gtest/gtest.h>

#ifdef WITH_CUDA

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string_view>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/tensor/tensor.h"
#include "memory/device.h"
#include "operators/common/cuda_product.h"

namespace skiff {
namespace {

// By k: with a workspace (odd) and without; none for matrices at odd addresses (5, 12); none at all
// (6, 17); no sum.
constexpr int64_t kDepths[] = {1, 2, 5, 6, 7, 12, 17, 40, 0};

// Elements from the begin of a matrix to the end of the last one of its batch.
int64_t SpanOf(int64_t rows, int64_t row_distance, int64_t columns, int64_t batches,
               int64_t stride) {
  if (rows == 0 || columns == 0) return 0;
  return (batches - 1) * stride + (rows - 1) * row_distance + columns;
}

// A block of the device's memory whose values begin `offset` elements after an aligned address.
template <typename T>
class OnDevice {
 public:
  OnDevice(const std::vector<T>& values, int64_t offset) : offset_(offset), count_(values.size()) {
    std::vector<T> padded(static_cast<size_t>(offset) + values.size() + 1, T{0});
    std::copy(values.begin(), values.end(), padded.begin() + offset);
    block_ = Tensor({static_cast<int64_t>(padded.size())}, kDTypeOf<T>, Place::Cuda());
    CopyTensor(Tensor::FromValues<T>(block_.shape(), padded), &block_);
  }
  T* data() { return block_.data<T>() + offset_; }
  std::vector<T> Values() const {
    const std::vector<T> all = CopyToCpu(block_).ToVector<T>();
    return {all.begin() + offset_, all.begin() + offset_ + static_cast<int64_t>(count_)};
  }

 private:
  int64_t offset_;
  size_t count_;
  Tensor block_;
};

template <typename T>
std::vector<T> Drawn(int64_t count, std::mt19937* random) {
  std::uniform_real_distribution<double> numbers(-1, 1);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = static_cast<T>(numbers(*random));
  return values;
}

template <typename T>
class CudaProductTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no device";
    stream_ = DeviceOf(Place::Cuda()).MakeStream();
  }

  // Multiplies on the device and on the host, with each matrix `offset` elements after an aligned
  // address, and expects no element of C's block that isn't of C to change. `shape` has all
  // distances.
  void ExpectProduct(const CudaProductShape& shape, T alpha, T beta, int64_t offset) {
    std::mt19937 random(static_cast<uint32_t>(shape.k * 100 + shape.m));
    const int64_t a_rows = shape.transpose_a ? shape.k : shape.m;
    const int64_t a_columns = shape.transpose_a ? shape.m : shape.k;
    const int64_t b_rows = shape.transpose_b ? shape.n : shape.k;
    const int64_t b_columns = shape.transpose_b ? shape.k : shape.n;
    const auto a =
        Drawn<T>(SpanOf(a_rows, shape.lda, a_columns, shape.batches, shape.stride_a), &random);
    const auto b =
        Drawn<T>(SpanOf(b_rows, shape.ldb, b_columns, shape.batches, shape.stride_b), &random);
    auto c = Drawn<T>(SpanOf(shape.m, shape.ldc, shape.n, shape.batches, shape.stride_c), &random);
    OnDevice<T> device_a(a, offset);
    OnDevice<T> device_b(b, offset);
    OnDevice<T> device_c(c, offset);
    const CudaProduct<T> product(shape);
    Tensor workspace({product.workspace_bytes() + 1}, DType::kUint8, Place::Cuda());
    product.Run(stream_->handle(), device_a.data(), device_b.data(), device_c.data(),
                workspace.raw_data(), alpha, beta);
    stream_->Wait();
    std::vector<double> expected(c.begin(), c.end());
    for (int64_t batch = 0; batch < shape.batches; ++batch) {
      for (int64_t i = 0; i < shape.m; ++i) {
        for (int64_t j = 0; j < shape.n; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < shape.k; ++p) {
            const int64_t at_a = shape.transpose_a ? p * shape.lda + i : i * shape.lda + p;
            const int64_t at_b = shape.transpose_b ? j * shape.ldb + p : p * shape.ldb + j;
            sum += static_cast<double>(a[static_cast<size_t>(batch * shape.stride_a + at_a)]) *
                   static_cast<double>(b[static_cast<size_t>(batch * shape.stride_b + at_b)]);
          }
          double& at = expected[static_cast<size_t>(batch * shape.stride_c + i * shape.ldc + j)];
          at = static_cast<double>(alpha) * sum + (beta == 0 ? 0 : static_cast<double>(beta) * at);
        }
      }
    }
    const std::vector<T> found = device_c.Values();
    const double bound = 4 * static_cast<double>(shape.k + 2) * std::numeric_limits<T>::epsilon();
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(found[i]), expected[i], bound)
          << "element " << i << ", m " << shape.m << ", n " << shape.n << ", k " << shape.k
          << ", transposes " << shape.transpose_a << shape.transpose_b << ", offset " << offset;
    }
  }

  std::unique_ptr<DeviceStream> stream_;
};

using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(CudaProductTest, Types);

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
    this->ExpectProduct(shape, TypeParam(0.5), TypeParam(-2), 0);
    this->ExpectProduct(shape, TypeParam(1), TypeParam(1), 1);
  }
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

// A wrong address in the stand-in's workspace is an error of the emulation.
TYPED_TEST(CudaProductTest, IsByTheLibraryWhereThereIsOne) {
  const char* const options = std::getenv("SKIFF_CUDA_EMULATION");
  if (options == nullptr) GTEST_SKIP() << "whether there is a library isn't known";
  const bool has_libraries =
      std::string_view(options).find("has_libraries=1") != std::string_view::npos;
  const CudaProductShape with_workspace{.m = 9, .n = 13, .k = 7, .lda = 7, .ldb = 13, .ldc = 13};
  EXPECT_EQ(CudaProduct<TypeParam>(with_workspace).is_by_cublas(), has_libraries);
  EXPECT_EQ(CudaProduct<TypeParam>(with_workspace).workspace_bytes() > 0, has_libraries);
  const CudaProductShape unsupported{.m = 9, .n = 13, .k = 6, .lda = 6, .ldb = 13, .ldc = 13};
  EXPECT_FALSE(CudaProduct<TypeParam>(unsupported).is_by_cublas());
}

}  // namespace
}  // namespace skiff

#else

TEST(CudaProductTest, IsBuilt) { GTEST_SKIP() << "built without CUDA"; }

#endif
