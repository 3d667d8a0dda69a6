// Moving memory on each place. On CUDA skipped if there is no device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/registry.h"
#include "framework/tensor/tensor.h"
#include "memory/device.h"
#include "memory/places.h"
#include "operators/common/half.h"
#include "operators/common/memory_mover.h"
#include "tests/harness/cuda_place.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

class MovedMemory : public ::testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    // Registering operators tells who moves memory on a device.
    DefaultOpRegistry();
    try {
      AllocatorOf(GetParam());
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    device_.place = GetParam();
    if (!GetParam().is_cpu()) {
      use_.emplace(&DeviceOf(GetParam()));
      stream_ = DeviceOf(GetParam()).MakeStream();
      device_.stream = stream_.get();
    }
    run_.device_context = &device_;
  }

  const MemoryMover& mover() const { return MemoryMoverOf(run_); }

  // Returns memory of the place with these bytes.
  std::shared_ptr<Buffer> Filled(const std::vector<unsigned char>& bytes) const {
    const auto size = static_cast<int64_t>(bytes.size());
    auto buffer = std::make_shared<Buffer>(AllocatorOf(GetParam()), size);
    Tensor filled({size}, DType::kUint8, buffer);
    CopyTensor(Tensor::FromValues<uint8_t>({size}, bytes), &filled);
    return buffer;
  }
  std::vector<unsigned char> Contents(const std::shared_ptr<Buffer>& buffer) const {
    if (stream_) stream_->Wait();
    return CopyToCpu(Tensor({buffer->bytes()}, DType::kUint8, buffer)).ToVector<uint8_t>();
  }

  static std::vector<unsigned char> Numbers(size_t count) {
    std::vector<unsigned char> numbers(count);
    for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<unsigned char>(i * 7 + 1);
    return numbers;
  }

  DeviceContext device_;
  std::optional<DeviceUse> use_;
  std::unique_ptr<DeviceStream> stream_;
  KernelContext run_;
};

TEST_P(MovedMemory, CopiesAndClearsBytes) {
  const std::vector<unsigned char> from = Numbers(1000);
  const auto source = Filled(from);
  const auto target = Filled(std::vector<unsigned char>(1000, 9));
  mover().CopyBytes(run_, source->data(), target->data(), 777);
  mover().ZeroBytes(run_, static_cast<char*>(target->data()) + 3, 5);
  std::vector<unsigned char> expected(1000, 9);
  std::copy_n(from.begin(), 777, expected.begin());
  std::fill_n(expected.begin() + 3, 5, 0);
  EXPECT_EQ(Contents(target), expected);
  mover().CopyBytes(run_, target->data(), target->data(), 1000);
  EXPECT_EQ(Contents(target), expected);
}

// More runs than a launch takes, of all lengths, empty ones and zeros among them, at addresses of
// each alignment.
TEST_P(MovedMemory, CopiesManyRuns) {
  for (const int64_t alignment : {1, 2, 4, 8, 16}) {
    constexpr int64_t kRuns = 300;
    constexpr int64_t kRoom = 64;
    const std::vector<unsigned char> from = Numbers(kRuns * kRoom);
    const auto source = Filled(from);
    const auto target = Filled(std::vector<unsigned char>(kRuns * kRoom, 9));
    std::vector<unsigned char> expected(kRuns * kRoom, 9);
    std::vector<MemoryRun> runs;
    for (int64_t i = 0; i < kRuns; ++i) {
      const int64_t bytes = i % 4 * alignment;
      // Their order on both sides differs.
      const int64_t begin = (kRuns - 1 - i) * kRoom + alignment * (i % 2);
      const int64_t place = i * kRoom + alignment * (i % 3 == 0 ? 1 : 0);
      const bool is_zero = i % 5 == 0;
      runs.push_back({.from = is_zero ? nullptr : static_cast<char*>(source->data()) + begin,
                      .to = static_cast<char*>(target->data()) + place,
                      .bytes = bytes});
      for (int64_t k = 0; k < bytes; ++k) {
        expected[static_cast<size_t>(place + k)] =
            is_zero ? 0 : from[static_cast<size_t>(begin + k)];
      }
    }
    mover().CopyRuns(run_, runs);
    EXPECT_EQ(Contents(target), expected) << "alignment " << alignment;
  }
}

template <typename T>
std::vector<unsigned char> BytesOf(const std::vector<T>& values) {
  std::vector<unsigned char> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Sums of half are those of float32, rounded.
template <typename T>
class AddedRuns {
 public:
  using Wide = WideType<T>;

  AddedRuns() {
    for (int i = 0; i < 1000; ++i) {
      x.push_back(static_cast<T>(static_cast<Wide>(i) / 8));
      sum.push_back(static_cast<T>(static_cast<Wide>(1000 - i)));
    }
    expected = sum;
    for (size_t i = 100; i < 350; ++i) Add(x[i], &expected[i + 3]);
    Add(x[999], &expected[0]);
  }
  std::vector<MemoryRun> Runs(Buffer* source, Buffer* target) const {
    const auto* from = static_cast<const T*>(source->data());
    auto* to = static_cast<T*>(target->data());
    constexpr int64_t kBytes = sizeof(T);
    return {{from + 100, to + 103, 250 * kBytes}, {from, to, 0}, {from + 999, to, kBytes}};
  }

  std::vector<T> x, sum, expected;

 private:
  static void Add(T term, T* to) {
    *to = static_cast<T>(static_cast<Wide>(*to) + static_cast<Wide>(term));
  }
};

TEST_P(MovedMemory, AddsManyRuns) {
  const auto check = [&]<typename T>(T) {
    const AddedRuns<T> added;
    const auto source = Filled(BytesOf(added.x));
    const auto target = Filled(BytesOf(added.sum));
    mover().AddRuns(run_, kDTypeOf<T>, added.Runs(source.get(), target.get()));
    EXPECT_EQ(Contents(target), BytesOf(added.expected)) << DTypeName(kDTypeOf<T>);
  };
  check(float{});
  check(double{});
  check(Float16{});
  check(BFloat16{});
  EXPECT_THAT(ErrorText([&] { mover().AddRuns(run_, DType::kInt32, {}); }),
              testing::HasSubstr("a sum of int32, expected floats"));
}

INSTANTIATE_TEST_SUITE_P(Places, MovedMemory, ::testing::Values(Place::Cpu(), harness::CudaPlace()),
                         [](const auto& info) { return info.param.is_cpu() ? "Cpu" : "Cuda"; });

}  // namespace
}  // namespace skiff
