// CUDA kernels of fill_constant; fill_constant.cc says where the value comes from.
#include <cstring>
#include <limits>
#include <type_traits>

#include "operators/common/cuda/cuda_launch.h"
#include "operators/common/half.h"
#include "operators/tensor/kernels/cuda_fill.cuh"
#include "operators/tensor/kernels/fill.h"

namespace skiff {
namespace {

// A value that a tensor gives.
struct DeviceValue {
  bool is_integer;
  double real;
  int64_t integer;
};

template <typename T>
__device__ DeviceValue ValueAt(const void* tensor) {
  const auto element = static_cast<WideType<T>>(*static_cast<const T*>(tensor));
  if constexpr (std::is_integral_v<T>) {
    return {true, static_cast<double>(element), static_cast<int64_t>(element)};
  } else {
    return {false, static_cast<double>(element), 0};
  }
}

__device__ DeviceValue LoadValue(const void* tensor, DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ValueAt<float>(tensor);
    case DType::kFloat64:
      return ValueAt<double>(tensor);
    case DType::kFloat16:
      return ValueAt<Float16>(tensor);
    case DType::kBFloat16:
      return ValueAt<BFloat16>(tensor);
    case DType::kInt8:
      return ValueAt<int8_t>(tensor);
    case DType::kInt16:
      return ValueAt<int16_t>(tensor);
    case DType::kInt32:
      return ValueAt<int32_t>(tensor);
    case DType::kInt64:
      return ValueAt<int64_t>(tensor);
    default:
      return ValueAt<uint8_t>(tensor);
  }
}

// Sets the bits of T, or returns false if it doesn't hold the value.
template <typename T>
__device__ bool SetInteger(const DeviceValue& value, uint64_t* bits) {
  constexpr T kLowest = std::numeric_limits<T>::lowest();
  constexpr T kHighest = std::numeric_limits<T>::max();
  if (value.is_integer) {
    if (value.integer < kLowest || value.integer > kHighest) return false;
    *bits = static_cast<uint64_t>(value.integer);
    return true;
  }
  // Exact: powers of two, or 0. Reals less than 1 below the lowest integer are truncated to it.
  constexpr double kLimit = static_cast<double>(kHighest / 2 + 1) * 2;
  constexpr double kLowestReal = static_cast<double>(kLowest);
  const bool is_above = value.real >= kLowestReal || value.real > kLowestReal - 1.0;
  if (!(is_above && value.real < kLimit)) return false;
  *bits = static_cast<uint64_t>(static_cast<int64_t>(value.real));
  return true;
}

__device__ bool SetBits(const DeviceValue& value, DType dtype, uint64_t* bits) {
  const float as_float =
      value.is_integer ? static_cast<float>(value.integer) : static_cast<float>(value.real);
  switch (dtype) {
    case DType::kFloat32:
      *bits = std::bit_cast<uint32_t>(as_float);
      return true;
    case DType::kFloat16:
      *bits = Float16(as_float).bits;
      return true;
    case DType::kBFloat16:
      *bits = BFloat16(as_float).bits;
      return true;
    case DType::kFloat64:
      *bits = std::bit_cast<uint64_t>(value.is_integer ? static_cast<double>(value.integer)
                                                       : value.real);
      return true;
    case DType::kBool:
      *bits = value.is_integer ? value.integer != 0 : value.real != 0;
      return true;
    case DType::kInt8:
      return SetInteger<int8_t>(value, bits);
    case DType::kInt16:
      return SetInteger<int16_t>(value, bits);
    case DType::kInt32:
      return SetInteger<int32_t>(value, bits);
    case DType::kInt64:
      return SetInteger<int64_t>(value, bits);
    default:
      return SetInteger<uint8_t>(value, bits);
  }
}

// By one thread. A fault's value has the bits of a float.
__global__ void ReadValue(const void* tensor, DType from, DType to, uint64_t* bits,
                          uint64_t* fault) {
  const DeviceValue value = LoadValue(tensor, from);
  *bits = 0;
  if (SetBits(value, to, bits)) return;
  NoteFault(fault, 0, std::bit_cast<int32_t>(static_cast<float>(value.real)));
}

class FillFromTensor final : public Kernel {
 public:
  explicit FillFromTensor(PrepareContext& context)
      : value_(context, "ValueTensor"),
        out_(context, "Out"),
        dtype_(context.Output("Out").dtype),
        bits_(context.RequestWorkspace(sizeof(uint64_t))) {}

  void Run(const KernelContext& run) override {
    auto* bits = static_cast<uint64_t*>(run.workspace(bits_));
    ReadValue<<<1, 1, 0, StreamOf(run)>>>(value_(run), value_.tensor(run).dtype(), dtype_, bits,
                                          run.fault);
    CheckLaunch("fill_constant");
    FillOnDevice(run, 0, bits, &out_.tensor(run));
  }

  [[noreturn]] void ThrowFault(const DataFault& fault) const override {
    const FillValue value{.real = std::bit_cast<float>(static_cast<int32_t>(fault.value))};
    CheckFillValue(value, dtype_, kWhat);
    Kernel::ThrowFault(fault);
  }

 private:
  static constexpr const char* kWhat = "fill_constant: ValueTensor";

  In<> value_;
  Out<> out_;
  DType dtype_;
  int bits_;
};

}  // namespace

void RegisterFillConstantCuda(OpRegistry& registry) {
  AddCudaKernelsForAllDTypes(
      registry, "fill_constant", [](PrepareContext& context) -> std::unique_ptr<Kernel> {
        if (context.HasInput("ValueTensor")) {
          return std::make_unique<FillFromTensor>(context);
        }
        const Out<> out(context, "Out");
        const uint64_t bits =
            FillBits(FillValueFromAttributes(context), context.Output("Out").dtype);
        return MakeKernel(
            [=](const KernelContext& run) { FillOnDevice(run, bits, nullptr, &out.tensor(run)); });
      });
}

}  // namespace skiff
