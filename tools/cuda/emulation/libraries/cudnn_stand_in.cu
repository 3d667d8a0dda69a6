#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "operators/common/half.h"
#include "operators/common/libraries/cudnn_declarations.h"
#include "tools/cuda/emulation/devices.h"
#include "tools/cuda/emulation/libraries/cudnn_stand_in.h"
#include "tools/cuda/emulation/libraries/live_objects.h"
#include "tools/cuda/emulation/libraries/tensor_core_factor.cuh"
#include "tools/cuda/emulation/streams.h"

namespace skiff::cuda_emulation {
namespace {

// ---- what the adapter needs no names for

constexpr int kBadParam = 2000;         // CUDNN_STATUS_BAD_PARAM
constexpr int kNotSupported = 3000;     // CUDNN_STATUS_NOT_SUPPORTED
constexpr int kExecutionFailed = 5000;  // CUDNN_STATUS_EXECUTION_FAILED
constexpr int kMostDims = 8;            // CUDNN_DIM_MAX
constexpr int kNonDeterministic = 0;    // CUDNN_NON_DETERMINISTIC
constexpr int kDefaultMath = 0;         // CUDNN_DEFAULT_MATH

using cudnn::Algorithm;
using cudnn::kBFloat16;
using cudnn::kChannelsFirst;
using cudnn::kCrossCorrelation;
using cudnn::kDeterministic;
using cudnn::kFftBackward;
using cudnn::kFftForward;
using cudnn::kFloat;
using cudnn::kFloat16;
using cudnn::kFusedSums;
using cudnn::kRoundToTensorCores;
using cudnn::kSuccess;
using cudnn::kTensorCores;
using cudnn::kWinogradBackward;
using cudnn::kWinogradForward;
using cudnn::Pointer;

const char* ErrorString(int status) {
  switch (status) {
    case kSuccess:
      return "CUDNN_STATUS_SUCCESS";
    case kBadParam:
      return "CUDNN_STATUS_BAD_PARAM";
    case kNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case kExecutionFailed:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_UNKNOWN_STATUS";
  }
}

// ---- handles and descriptors

struct Handle {
  int device = CurrentDevice();
  std::optional<cudaStream_t> stream;
};

// dims and axes are 0 until they are set.

struct Tensor {
  int type = kFloat;
  int dims = 0;
  std::array<int, 5> sizes{};
};

struct Filter {
  int type = kFloat;
  int dims = 0;
  std::array<int, 5> sizes{};
};

struct Convolution {
  int axes = 0;
  std::array<int, 3> padding{};
  std::array<int, 3> stride{};
  std::array<int, 3> dilation{};
  int groups = 1;
  int math = kDefaultMath;
};

int StatusOf(bool is_done) { return is_done ? kSuccess : kBadParam; }

template <class Object>
int Make(Pointer* pointer) {
  return StatusOf(LiveObjects<Object>::Make(pointer));
}

template <class Object>
int Destroy(Pointer pointer) {
  return StatusOf(LiveObjects<Object>::Destroy(pointer));
}

template <class Object, class Change>
int Set(Pointer pointer, const Change& change) {
  return StatusOf(LiveObjects<Object>::Set(pointer, change));
}

// Whether there is such a handle, of the current device.
bool IsHandle(Pointer handle) {
  const auto found = LiveObjects<Handle>::Get(handle);
  return found && found->device == CurrentDevice();
}

int SetStream(Pointer handle, cudaStream_t stream) {
  if (!IsHandle(handle) || DeviceOfStream(stream) != CurrentDevice()) return kBadParam;
  return Set<Handle>(handle, [stream](Handle* found) { found->stream = stream; });
}

bool AllAtLeast(int least, const int* numbers, int count) {
  return numbers != nullptr &&
         std::all_of(numbers, numbers + count, [least](int number) { return number >= least; });
}

bool IsHalfType(int type) { return type == kFloat16 || type == kBFloat16; }

// What tensors and filters have in common.
int CheckSizes(int type, int dims, const int* sizes) {
  if (dims > kMostDims) return kNotSupported;
  if (dims < 1 || !AllAtLeast(1, sizes, dims)) return kBadParam;
  if ((type != kFloat && !IsHalfType(type)) || dims < 4 || dims > 5) return kNotSupported;
  constexpr int64_t kMostElements = (int64_t{1} << 31) - 1;
  int64_t elements = 1;
  for (int i = 0; i < dims; ++i) {
    elements *= sizes[i];
    if (elements > kMostElements) return kNotSupported;
  }
  return kSuccess;
}

// With strides that aren't those of whole tensors in the order of the sizes, too.
int SetTensor(Pointer tensor, int type, int dims, const int* sizes, const int* strides) {
  const int status = CheckSizes(type, dims, sizes);
  if (status != kSuccess) return status;
  if (strides == nullptr || std::count(strides, strides + dims, 0) > 0) return kBadParam;
  int64_t stride = 1;
  for (int i = dims - 1; i >= 0; --i) {
    if (strides[i] != stride) return kNotSupported;
    stride *= sizes[i];
  }
  return Set<Tensor>(tensor, [&](Tensor* set) {
    set->type = type;
    set->dims = dims;
    std::copy_n(sizes, dims, set->sizes.begin());
  });
}

int SetFilter(Pointer filter, int type, int format, int dims, const int* sizes) {
  const int status = CheckSizes(type, dims, sizes);
  if (status != kSuccess) return status;
  if (format != kChannelsFirst) return kNotSupported;
  return Set<Filter>(filter, [&](Filter* set) {
    set->type = type;
    set->dims = dims;
    std::copy_n(sizes, dims, set->sizes.begin());
  });
}

// Leaves groups and math type as they are, as cuDNN does.
int SetConvolution(Pointer convolution, int axes, const int* padding, const int* stride,
                   const int* dilation, int mode, int type) {
  if (axes > kMostDims - 2) return kNotSupported;
  if (axes < 0 || !AllAtLeast(0, padding, axes) || !AllAtLeast(1, stride, axes) ||
      !AllAtLeast(1, dilation, axes)) {
    return kBadParam;
  }
  if (axes < 2 || axes > 3 || mode != kCrossCorrelation || type != kFloat) return kNotSupported;
  return Set<Convolution>(convolution, [&](Convolution* set) {
    set->axes = axes;
    std::copy_n(padding, axes, set->padding.begin());
    std::copy_n(stride, axes, set->stride.begin());
    std::copy_n(dilation, axes, set->dilation.begin());
  });
}

int SetGroups(Pointer convolution, int groups) {
  if (groups < 1) return kBadParam;
  return Set<Convolution>(convolution, [&](Convolution* set) { set->groups = groups; });
}

int SetMath(Pointer convolution, int math) {
  if (math < kDefaultMath || math > kFusedSums) return kBadParam;
  return Set<Convolution>(convolution, [&](Convolution* set) { set->math = math; });
}

// ---- sizes

enum class Pass { kForward, kBackwardData, kBackwardFilter };

struct Triple {
  int64_t z;
  int64_t y;
  int64_t x;
};

// As a kernel gets it. An image has a depth of 1.
struct ConvolutionSizes {
  int type;  // of the numbers
  int64_t batch;
  int64_t groups;
  int64_t inputs;   // channels of a group
  int64_t outputs;  // the same
  Triple input;
  Triple filter;
  Triple output;
  Triple padding;
  Triple stride;
  Triple dilation;
  int math;
  bool rounds_to_tf32 = false;  // factors of float32
};

__host__ __device__ int64_t Count(const Triple& extents) {
  return extents.z * extents.y * extents.x;
}

// `missing` is what the depth of an image has.
Triple AlongAxes(const int* numbers, int axes, int64_t missing) {
  return {axes == 3 ? numbers[0] : missing, numbers[axes - 2], numbers[axes - 1]};
}

int64_t InputElements(const ConvolutionSizes& sizes) {
  return sizes.batch * sizes.groups * sizes.inputs * Count(sizes.input);
}

int64_t FilterElements(const ConvolutionSizes& sizes) {
  return sizes.groups * sizes.outputs * sizes.inputs * Count(sizes.filter);
}

int64_t OutputElements(const ConvolutionSizes& sizes) {
  return sizes.batch * sizes.groups * sizes.outputs * Count(sizes.output);
}

bool IsOutput(int64_t output, int64_t input, int64_t filter, int64_t padding, int64_t stride,
              int64_t dilation) {
  const int64_t room = input + 2 * padding - ((filter - 1) * dilation + 1);
  return room >= 0 && output == 1 + room / stride;
}

// The descriptors, or whatever else belongs to them, of which cuDNN's functions take two and then
// the result's.
struct Operands {
  Pointer input;
  Pointer filter;
  Pointer output;
};

Operands OperandsOf(Pass pass, Pointer first, Pointer second, Pointer result) {
  switch (pass) {
    case Pass::kForward:
      return {.input = first, .filter = second, .output = result};
    case Pass::kBackwardData:
      return {.input = result, .filter = first, .output = second};
    case Pass::kBackwardFilter:
      break;
  }
  return {.input = first, .filter = result, .output = second};
}

// Checks all that the descriptors say of each other.
int SizesOf(const Operands& descriptors, Pointer convolution, ConvolutionSizes* sizes) {
  const auto input = LiveObjects<Tensor>::Get(descriptors.input);
  const auto filter = LiveObjects<Filter>::Get(descriptors.filter);
  const auto output = LiveObjects<Tensor>::Get(descriptors.output);
  const auto found = LiveObjects<Convolution>::Get(convolution);
  if (!input || !filter || !output || !found || found->axes == 0) return kBadParam;
  if (filter->type != input->type || output->type != input->type) return kBadParam;
  // Another one would let cuDNN round factors of float32 to TF32 without being asked; and for half,
  // kFusedSums would use no tensor cores.
  const bool may_fuse_sums = !IsHalfType(input->type);
  if (found->math != kTensorCores && !(may_fuse_sums && found->math == kFusedSums))
    return kBadParam;
  for (const int dims : {input->dims, filter->dims, output->dims}) {
    if (dims != found->axes + 2) return kBadParam;
  }
  const auto along = [&found](const int* numbers, int64_t missing) {
    return AlongAxes(numbers, found->axes, missing);
  };
  *sizes = {.type = input->type,
            .batch = input->sizes[0],
            .groups = found->groups,
            .inputs = filter->sizes[1],
            .outputs = filter->sizes[0] / found->groups,
            .input = along(&input->sizes[2], 1),
            .filter = along(&filter->sizes[2], 1),
            .output = along(&output->sizes[2], 1),
            .padding = along(found->padding.data(), 0),
            .stride = along(found->stride.data(), 1),
            .dilation = along(found->dilation.data(), 1),
            .math = found->math};
  const auto is_output = [sizes](int64_t Triple::*axis) {
    return IsOutput(sizes->output.*axis, sizes->input.*axis, sizes->filter.*axis,
                    sizes->padding.*axis, sizes->stride.*axis, sizes->dilation.*axis);
  };
  const bool fits =
      output->sizes[0] == sizes->batch && input->sizes[1] == sizes->groups * sizes->inputs &&
      filter->sizes[0] == sizes->groups * sizes->outputs && output->sizes[1] == filter->sizes[0] &&
      is_output(&Triple::z) && is_output(&Triple::y) && is_output(&Triple::x);
  return fits ? kSuccess : kBadParam;
}

// ---- algorithms

// cuDNN's numbers for the algorithms that are offered. Each is offered once, so that a run, which
// gets only the number, tells what it is.
struct Numbers {
  int unordered;  // not deterministic
  int tensor_cores;
  int doubtful;  // not supported, or with too large a workspace
  int with_workspace;
  int plain;
  int winograd;
};

Numbers NumbersOf(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return {.unordered = 6,
              .tensor_cores = 1,
              .doubtful = 4,
              .with_workspace = 2,
              .plain = 0,
              .winograd = 7};
    case Pass::kBackwardData:
      return {.unordered = 0,
              .tensor_cores = 4,
              .doubtful = 2,
              .with_workspace = 3,
              .plain = 1,
              .winograd = 5};
    case Pass::kBackwardFilter:
      break;
  }
  return {.unordered = 0,
          .tensor_cores = 3,
          .doubtful = 2,
          .with_workspace = 6,
          .plain = 1,
          .winograd = 5};
}

// Kernels write workspaces in words.
using Word = uint64_t;

constexpr size_t kModestBytes = 776;
constexpr size_t kWinogradBytes = 520;
constexpr size_t kHugeBytes = size_t{1} << 30;

// More than framework/op/kernel_choice.h calls modest, and little enough to be written quickly.
size_t ImmodestBytes(const ConvolutionSizes& sizes) {
  const int64_t elements = InputElements(sizes) + FilterElements(sizes) + OutputElements(sizes);
  return sizeof(Word) * static_cast<size_t>(3 * elements + (1 << 19) + (1 << 13));
}

bool HasWinograd(const ConvolutionSizes& sizes) {
  const auto is = [](const Triple& numbers, int64_t z, int64_t y, int64_t x) {
    return numbers.z == z && numbers.y == y && numbers.x == x;
  };
  return sizes.groups == 1 && sizes.input.z == 1 && is(sizes.filter, 1, 3, 3) &&
         is(sizes.stride, 1, 1, 1) && is(sizes.dilation, 1, 1, 1);
}

int64_t Sum(const ConvolutionSizes& sizes) {
  int64_t sum = sizes.batch + sizes.groups + sizes.inputs + sizes.outputs;
  for (const Triple& extents : {sizes.input, sizes.filter}) {
    sum += extents.z + extents.y + extents.x;
  }
  return sum;
}

Algorithm& Offer(int number, size_t bytes, int math, std::vector<Algorithm>* offers) {
  return offers->emplace_back(Algorithm{.algorithm = number,
                                        .status = kSuccess,
                                        .time = static_cast<float>(offers->size() + 1),
                                        .memory = bytes,
                                        .determinism = kDeterministic,
                                        .math = math});
}

// The first algorithm that transforms.
int FftOf(Pass pass) { return pass == Pass::kForward ? kFftForward : kFftBackward; }

// Of half: one product of matrices that adds in a fixed order, behind what mustn't run.
std::vector<Algorithm> OffersOfHalf(Pass pass, const ConvolutionSizes& sizes) {
  const int64_t sum = Sum(sizes);
  constexpr int kUnordered = 0;
  constexpr int kProduct = 1;
  std::vector<Algorithm> offers;
  const auto offer = [&offers](int number, size_t bytes, int math) -> Algorithm& {
    return Offer(number, bytes, math, &offers);
  };
  offer(kUnordered, 0, kTensorCores).determinism = kNonDeterministic;
  offer(FftOf(pass), 0, kFusedSums);
  if (HasWinograd(sizes)) {
    offer(pass == Pass::kForward ? kWinogradForward : kWinogradBackward, 0, kTensorCores);
  }
  const size_t bytes = sum % 3 == 0 ? 0 : kModestBytes;
  offer(kProduct, bytes, sum % 11 == 3 ? kRoundToTensorCores : kTensorCores);
  return offers;
}

// The fastest first, as cuDNN would estimate it. Empty: it has no convolution of these sizes.
std::vector<Algorithm> Offers(Pass pass, const ConvolutionSizes& sizes) {
  const int64_t sum = Sum(sizes);
  if (sum % 11 == 6) return {};
  if (IsHalfType(sizes.type)) return OffersOfHalf(pass, sizes);
  const Numbers numbers = NumbersOf(pass);
  std::vector<Algorithm> offers;
  const auto offer = [&offers](int number, size_t bytes, int math) -> Algorithm& {
    return Offer(number, bytes, math, &offers);
  };
  offer(numbers.unordered, 0, kFusedSums).determinism = kNonDeterministic;
  offer(numbers.tensor_cores, 0, sum % 2 == 0 ? kTensorCores : kRoundToTensorCores);
  if (sum % 3 == 2) {
    offer(numbers.doubtful, 0, kFusedSums).status = kNotSupported;
  } else {
    offer(numbers.doubtful, sum % 3 == 0 ? kHugeBytes : 2 * ImmodestBytes(sizes), kFusedSums);
  }
  if (sum % 11 == 3) return offers;
  if (sum % 5 == 2) {
    offer(numbers.with_workspace, ImmodestBytes(sizes), kFusedSums);
    return offers;
  }
  if (sum % 2 == 0) offer(numbers.plain, 0, kDefaultMath);
  offer(numbers.with_workspace, kModestBytes, kFusedSums);
  if (sum % 2 == 1) offer(numbers.plain, 0, kDefaultMath);
  if (HasWinograd(sizes)) {
    offer(numbers.winograd, kWinogradBytes, sum % 4 == 1 ? kRoundToTensorCores : kFusedSums);
  }
  return offers;
}

// Returns what was offered for these sizes under this number, if anything was.
std::optional<Algorithm> OfferOf(Pass pass, const ConvolutionSizes& sizes, int number) {
  const std::vector<Algorithm> offers = Offers(pass, sizes);
  const auto found = std::ranges::find(offers, number, &Algorithm::algorithm);
  return found == offers.end() ? std::nullopt : std::optional(*found);
}

bool MayRun(Pass pass, const ConvolutionSizes& sizes, const Algorithm& algorithm) {
  constexpr size_t kMostBytes = size_t{512} << 20;
  if (algorithm.determinism != kDeterministic || algorithm.memory > kMostBytes ||
      algorithm.math == kRoundToTensorCores) {
    return false;
  }
  if (IsHalfType(sizes.type)) return algorithm.algorithm < FftOf(pass);
  return algorithm.math != kTensorCores || sizes.math == kTensorCores;
}

template <Pass kPass>
int Choose(Pointer handle, Pointer first, Pointer second, Pointer convolution, Pointer result,
           int requested, int* found, Algorithm* algorithms) {
  if (!IsHandle(handle) || requested < 1 || found == nullptr || algorithms == nullptr) {
    return kBadParam;
  }
  ConvolutionSizes sizes;
  const int status = SizesOf(OperandsOf(kPass, first, second, result), convolution, &sizes);
  if (status != kSuccess) return status;
  const std::vector<Algorithm> offers = Offers(kPass, sizes);
  if (offers.empty()) return kNotSupported;
  *found = std::min(requested, static_cast<int>(offers.size()));
  std::copy_n(offers.begin(), *found, algorithms);
  return kSuccess;
}

// Tells the bytes of an algorithm with a bad status, too: the status must be looked at.
template <Pass kPass>
int WorkspaceBytes(Pointer handle, Pointer first, Pointer second, Pointer convolution,
                   Pointer result, int number, size_t* bytes) {
  if (!IsHandle(handle) || bytes == nullptr) return kBadParam;
  ConvolutionSizes sizes;
  const int status = SizesOf(OperandsOf(kPass, first, second, result), convolution, &sizes);
  if (status != kSuccess) return status;
  const std::optional<Algorithm> algorithm = OfferOf(kPass, sizes, number);
  if (!algorithm) return kNotSupported;
  *bytes = algorithm->memory;
  return kSuccess;
}

// ---- kernels

__device__ Triple PointAt(const Triple& extents, int64_t index) {
  return {index / extents.x / extents.y, index / extents.x % extents.y, index % extents.x};
}

// -1: it is outside.
__device__ int64_t IndexOf(const Triple& extents, const Triple& point) {
  const bool is_inside = point.z >= 0 && point.z < extents.z && point.y >= 0 &&
                         point.y < extents.y && point.x >= 0 && point.x < extents.x;
  return is_inside ? (point.z * extents.y + point.y) * extents.x + point.x : -1;
}

// The point of the input, or of its padding, that a tap of the filter meets at an output.
__device__ Triple InputAt(const ConvolutionSizes& sizes, const Triple& output, const Triple& tap) {
  return {output.z * sizes.stride.z - sizes.padding.z + tap.z * sizes.dilation.z,
          output.y * sizes.stride.y - sizes.padding.y + tap.y * sizes.dilation.y,
          output.x * sizes.stride.x - sizes.padding.x + tap.x * sizes.dilation.x};
}

// -1: the filter passes over it.
__device__ int64_t Quotient(int64_t distance, int64_t stride) {
  return distance >= 0 && distance % stride == 0 ? distance / stride : -1;
}

// The output at which the tap meets the point of the input. Outside of all outputs: there is none.
__device__ Triple OutputAt(const ConvolutionSizes& sizes, const Triple& input, const Triple& tap) {
  return {Quotient(input.z + sizes.padding.z - tap.z * sizes.dilation.z, sizes.stride.z),
          Quotient(input.y + sizes.padding.y - tap.y * sizes.dilation.y, sizes.stride.y),
          Quotient(input.x + sizes.padding.x - tap.x * sizes.dilation.x, sizes.stride.x)};
}

template <class Visit>
__device__ void ForEachPoint(const Triple& extents, const Visit& visit) {
  for (int64_t z = 0; z < extents.z; ++z) {
    for (int64_t y = 0; y < extents.y; ++y) {
      for (int64_t x = 0; x < extents.x; ++x) visit(Triple{z, y, x});
    }
  }
}

template <typename T>
__device__ double Dot(const ConvolutionSizes& sizes, int64_t count, const T* a, int64_t a_step,
                      const T* b, int64_t b_step) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += FactorOf(a[i * a_step], sizes.rounds_to_tf32) *
           FactorOf(b[i * b_step], sizes.rounds_to_tf32);
  }
  return sum;
}

// Each of the next three returns an element of its pass's result.

template <typename T>
__device__ double Output(const ConvolutionSizes& sizes, int64_t element, const T* input,
                         const T* filter) {
  const int64_t points = Count(sizes.output);
  const int64_t channels = sizes.groups * sizes.outputs;
  const Triple output = PointAt(sizes.output, element % points);
  const int64_t channel = element / points % channels;
  const int64_t group = channel / sizes.outputs;
  input += (element / points / channels * sizes.groups + group) * sizes.inputs * Count(sizes.input);
  filter += channel * sizes.inputs * Count(sizes.filter);
  double sum = 0;
  ForEachPoint(sizes.filter, [&](const Triple& tap) {
    const int64_t from = IndexOf(sizes.input, InputAt(sizes, output, tap));
    if (from < 0) return;
    sum += Dot(sizes, sizes.inputs, input + from, Count(sizes.input),
               filter + IndexOf(sizes.filter, tap), Count(sizes.filter));
  });
  return sum;
}

template <typename T>
__device__ double InputGradient(const ConvolutionSizes& sizes, int64_t element, const T* filter,
                                const T* gradient) {
  const int64_t points = Count(sizes.input);
  const int64_t channels = sizes.groups * sizes.inputs;
  const Triple input = PointAt(sizes.input, element % points);
  const int64_t channel = element / points % channels;
  const int64_t group = channel / sizes.inputs;
  gradient +=
      (element / points / channels * sizes.groups + group) * sizes.outputs * Count(sizes.output);
  filter += (group * sizes.outputs * sizes.inputs + channel % sizes.inputs) * Count(sizes.filter);
  double sum = 0;
  ForEachPoint(sizes.filter, [&](const Triple& tap) {
    const int64_t from = IndexOf(sizes.output, OutputAt(sizes, input, tap));
    if (from < 0) return;
    sum += Dot(sizes, sizes.outputs, gradient + from, Count(sizes.output),
               filter + IndexOf(sizes.filter, tap), sizes.inputs * Count(sizes.filter));
  });
  return sum;
}

template <typename T>
__device__ double FilterGradient(const ConvolutionSizes& sizes, int64_t element, const T* input,
                                 const T* gradient) {
  const int64_t taps = Count(sizes.filter);
  const Triple tap = PointAt(sizes.filter, element % taps);
  const int64_t channel = element / taps / sizes.inputs;
  const int64_t group = channel / sizes.outputs;
  input += (group * sizes.inputs + element / taps % sizes.inputs) * Count(sizes.input);
  gradient += channel * Count(sizes.output);
  double sum = 0;
  ForEachPoint(sizes.output, [&](const Triple& output) {
    const int64_t from = IndexOf(sizes.input, InputAt(sizes, output, tap));
    if (from < 0) return;
    sum += Dot(sizes, sizes.batch, input + from, sizes.groups * sizes.inputs * Count(sizes.input),
               gradient + IndexOf(sizes.output, output),
               sizes.groups * sizes.outputs * Count(sizes.output));
  });
  return sum;
}

template <typename T>
__device__ double Element(Pass pass, const ConvolutionSizes& sizes, int64_t element, const T* first,
                          const T* second) {
  switch (pass) {
    case Pass::kForward:
      return Output(sizes, element, first, second);
    case Pass::kBackwardData:
      return InputGradient(sizes, element, first, second);
    case Pass::kBackwardFilter:
      break;
  }
  return FilterGradient(sizes, element, first, second);
}

struct Run {
  Pass pass;
  ConvolutionSizes sizes;
  const void* first;
  const void* second;
  void* result;
  int64_t results;
  float alpha;
  float beta;
  Word* workspace;
  int64_t words;
};

// result = alpha · convolution + beta · result. A workspace that shares memory with a tensor is a
// race of the threads that write the one and read or write the other.
template <typename T>
__global__ void Convolve(Run run) {
  const int64_t first = blockIdx.x * blockDim.x + threadIdx.x;
  const int64_t step = gridDim.x * blockDim.x;
  for (int64_t i = first; i < run.words; i += step) run.workspace[i] = ~Word{0};
  for (int64_t i = first; i < run.results; i += step) {
    double value = Element(run.pass, run.sizes, i, static_cast<const T*>(run.first),
                           static_cast<const T*>(run.second));
    value *= static_cast<double>(run.alpha);
    T& result = static_cast<T*>(run.result)[i];
    if (run.beta != 0) {
      value += static_cast<double>(run.beta) * static_cast<double>(static_cast<float>(result));
    }
    result = static_cast<T>(static_cast<float>(value));
  }
}

int64_t ResultsOf(Pass pass, const ConvolutionSizes& sizes) {
  switch (pass) {
    case Pass::kForward:
      return OutputElements(sizes);
    case Pass::kBackwardData:
      return InputElements(sizes);
    case Pass::kBackwardFilter:
      break;
  }
  return FilterElements(sizes);
}

bool IsWorkspace(const Algorithm& algorithm, const void* workspace, size_t bytes) {
  constexpr uintptr_t kAlignment = 256;
  if (algorithm.memory == 0) return true;
  return workspace != nullptr && reinterpret_cast<uintptr_t>(workspace) % kAlignment == 0 &&
         bytes >= algorithm.memory;
}

// Whether numbers of the type may begin there. (More is asked of filters with channels last only.)
bool IsNumber(int type, const void* at) {
  return reinterpret_cast<uintptr_t>(at) % (IsHalfType(type) ? 2 : 4) == 0;
}

int Launch(const Run& run, cudaStream_t stream) {
  constexpr int64_t kThreads = 128;
  // A thread costs more than an element.
  constexpr int64_t kMostBlocks = 32;
  const auto blocks =
      static_cast<unsigned>(std::min((run.results + kThreads - 1) / kThreads, kMostBlocks));
  if (run.sizes.type == kBFloat16) {
    Convolve<BFloat16><<<blocks, kThreads, 0, stream>>>(run);
  } else if (run.sizes.type == kFloat16) {
    Convolve<Float16><<<blocks, kThreads, 0, stream>>>(run);
  } else {
    Convolve<float><<<blocks, kThreads, 0, stream>>>(run);
  }
  return cudaGetLastError() == cudaSuccess ? kSuccess : kExecutionFailed;
}

template <Pass kPass>
int RunPass(Pointer handle, const void* alpha, Pointer first_descriptor, const void* first,
            Pointer second_descriptor, const void* second, Pointer convolution, int number,
            void* workspace, size_t bytes, const void* beta, Pointer result_descriptor,
            void* result) {
  const std::optional<Handle> found = LiveObjects<Handle>::Get(handle);
  if (!IsHandle(handle) || !found->stream || alpha == nullptr || beta == nullptr ||
      first == nullptr || second == nullptr || result == nullptr) {
    return kBadParam;
  }
  ConvolutionSizes sizes;
  const int status =
      SizesOf(OperandsOf(kPass, first_descriptor, second_descriptor, result_descriptor),
              convolution, &sizes);
  if (status != kSuccess) return status;
  const std::optional<Algorithm> algorithm = OfferOf(kPass, sizes, number);
  if (!algorithm || algorithm->status != kSuccess) return kNotSupported;
  if (!MayRun(kPass, sizes, *algorithm) || !IsWorkspace(*algorithm, workspace, bytes)) {
    return kBadParam;
  }
  sizes.rounds_to_tf32 = algorithm->math == kTensorCores;
  for (const void* numbers : {first, second, static_cast<const void*>(result)}) {
    if (!IsNumber(sizes.type, numbers)) return kBadParam;
  }
  return Launch({.pass = kPass,
                 .sizes = sizes,
                 .first = first,
                 .second = second,
                 .result = result,
                 .results = ResultsOf(kPass, sizes),
                 .alpha = *static_cast<const float*>(alpha),
                 .beta = *static_cast<const float*>(beta),
                 .workspace = static_cast<Word*>(workspace),
                 .words = static_cast<int64_t>(algorithm->memory / sizeof(Word))},
                *found->stream);
}

template <class Function>
void* AddressOf(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void* CudnnFunction(std::string_view name) {
  const struct {
    std::string_view name;
    void* address;
  } functions[] = {
      {"cudnnCreate", AddressOf<cudnn::CreateFunction>(Make<Handle>)},
      {"cudnnSetStream", AddressOf<cudnn::SetStreamFunction>(SetStream)},
      {"cudnnGetErrorString", AddressOf<cudnn::ErrorStringFunction>(ErrorString)},
      {"cudnnCreateTensorDescriptor", AddressOf<cudnn::CreateFunction>(Make<Tensor>)},
      {"cudnnSetTensorNdDescriptor", AddressOf<cudnn::SetTensorFunction>(SetTensor)},
      {"cudnnDestroyTensorDescriptor", AddressOf<cudnn::DestroyFunction>(Destroy<Tensor>)},
      {"cudnnCreateFilterDescriptor", AddressOf<cudnn::CreateFunction>(Make<Filter>)},
      {"cudnnSetFilterNdDescriptor", AddressOf<cudnn::SetFilterFunction>(SetFilter)},
      {"cudnnDestroyFilterDescriptor", AddressOf<cudnn::DestroyFunction>(Destroy<Filter>)},
      {"cudnnCreateConvolutionDescriptor", AddressOf<cudnn::CreateFunction>(Make<Convolution>)},
      {"cudnnSetConvolutionNdDescriptor", AddressOf<cudnn::SetConvolutionFunction>(SetConvolution)},
      {"cudnnSetConvolutionGroupCount", AddressOf<cudnn::SetIntFunction>(SetGroups)},
      {"cudnnSetConvolutionMathType", AddressOf<cudnn::SetIntFunction>(SetMath)},
      {"cudnnDestroyConvolutionDescriptor",
       AddressOf<cudnn::DestroyFunction>(Destroy<Convolution>)},
      {"cudnnGetConvolutionForwardAlgorithm_v7",
       AddressOf<cudnn::ChooseFunction>(Choose<Pass::kForward>)},
      {"cudnnGetConvolutionForwardWorkspaceSize",
       AddressOf<cudnn::WorkspaceFunction>(WorkspaceBytes<Pass::kForward>)},
      {"cudnnConvolutionForward", AddressOf<cudnn::RunFunction>(RunPass<Pass::kForward>)},
      {"cudnnGetConvolutionBackwardDataAlgorithm_v7",
       AddressOf<cudnn::ChooseFunction>(Choose<Pass::kBackwardData>)},
      {"cudnnGetConvolutionBackwardDataWorkspaceSize",
       AddressOf<cudnn::WorkspaceFunction>(WorkspaceBytes<Pass::kBackwardData>)},
      {"cudnnConvolutionBackwardData", AddressOf<cudnn::RunFunction>(RunPass<Pass::kBackwardData>)},
      {"cudnnGetConvolutionBackwardFilterAlgorithm_v7",
       AddressOf<cudnn::ChooseFunction>(Choose<Pass::kBackwardFilter>)},
      {"cudnnGetConvolutionBackwardFilterWorkspaceSize",
       AddressOf<cudnn::WorkspaceFunction>(WorkspaceBytes<Pass::kBackwardFilter>)},
      {"cudnnConvolutionBackwardFilter",
       AddressOf<cudnn::RunFunction>(RunPass<Pass::kBackwardFilter>)},
  };
  for (const auto& function : functions) {
    if (function.name == name) return function.address;
  }
  return nullptr;
}

}  // namespace skiff::cuda_emulation
