// CUDA kernels of assign_value. The values are in a table on the device, which the first run
// writes.
#include <bit>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "framework/op/registry.h"
#include "operators/common/cuda/cuda_bytes.h"
#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/cuda/cuda_table.cuh"
#include "operators/common/half.h"

namespace skiff {
namespace {

// Words, not numbers: a table finds out what has changed, and NaN never equals NaN.
template <typename T>
struct WordOf {
  using Type = T;
};
template <>
struct WordOf<float> {
  using Type = uint32_t;
};
template <>
struct WordOf<double> {
  using Type = uint64_t;
};
template <>
struct WordOf<bool> {
  using Type = uint8_t;
};
template <>
struct WordOf<Float16> {
  using Type = uint16_t;
};
template <>
struct WordOf<BFloat16> {
  using Type = uint16_t;
};
template <typename T>
using Word = typename WordOf<T>::Type;

template <typename T>
std::vector<Word<T>> WordsOf(const OpContext& context) {
  std::vector<Word<T>> words;
  if constexpr (std::is_same_v<T, float>) {
    for (const float value : context.Attr<std::vector<float>>("fp32_values")) {
      words.push_back(std::bit_cast<uint32_t>(value));
    }
  } else if constexpr (kIsHalf<T>) {
    for (const float value : context.Attr<std::vector<float>>("fp32_values")) {
      words.push_back(T(value).bits);
    }
  } else if constexpr (std::is_same_v<T, double>) {
    for (const double value : context.Attr<std::vector<double>>("fp64_values")) {
      words.push_back(std::bit_cast<uint64_t>(value));
    }
  } else {
    const char* name = std::is_same_v<T, bool>      ? "bool_values"
                       : std::is_same_v<T, int32_t> ? "int32_values"
                                                    : "int64_values";
    for (const int64_t value : context.IntsAttr(name)) {
      words.push_back(static_cast<Word<T>>(static_cast<T>(value)));
    }
  }
  return words;
}

template <typename T>
class AssignValue final : public Kernel {
 public:
  explicit AssignValue(const PrepareContext& context)
      : out_(context, "Out"), words_(WordsOf<T>(context)), table_(context.place(), words_.size()) {}

  void Run(const KernelContext& run) override {
    Tensor& out = out_.tensor(run);
    if (words_.empty()) return;
    CopyOnDevice(run, table_.Store(words_, StreamOf(run)), out.raw_data(),
                 static_cast<int64_t>(words_.size() * sizeof(Word<T>)));
  }

 private:
  Out<T> out_;
  std::vector<Word<T>> words_;
  CudaTable<Word<T>> table_;
};

template <typename T>
void AddAssignValueKernel(OpRegistry& registry) {
  registry.AddCudaKernel("assign_value", kDTypeOf<T>,
                         [](PrepareContext& context) -> std::unique_ptr<Kernel> {
                           return std::make_unique<AssignValue<T>>(context);
                         });
}

}  // namespace

void RegisterAssignValueCuda(OpRegistry& registry) {
  AddAssignValueKernel<bool>(registry);
  AddAssignValueKernel<int32_t>(registry);
  AddAssignValueKernel<int64_t>(registry);
  AddAssignValueKernel<Float16>(registry);
  AddAssignValueKernel<BFloat16>(registry);
  AddAssignValueKernel<float>(registry);
  AddAssignValueKernel<double>(registry);
}

}  // namespace skiff
