#include "operators/common/libraries/cudnn_convolution.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/base/place.h"
#include "framework/base/shared_library.h"
#include "framework/base/str_cat.h"
#include "framework/op/kernel_choice.h"
#include "operators/common/libraries/cudnn_declarations.h"

namespace skiff {
namespace {

using cudnn::Algorithm;
using cudnn::kSuccess;
using cudnn::Pointer;

struct PassFunctions {
  cudnn::ChooseFunction* choose = nullptr;
  cudnn::WorkspaceFunction* workspace_bytes = nullptr;
  cudnn::RunFunction* run = nullptr;
};

struct Library {
  cudnn::CreateFunction* create = nullptr;
  cudnn::SetStreamFunction* set_stream = nullptr;
  cudnn::ErrorStringFunction* error = nullptr;
  cudnn::CreateFunction* create_tensor = nullptr;
  cudnn::SetTensorFunction* set_tensor = nullptr;
  cudnn::DestroyFunction* destroy_tensor = nullptr;
  cudnn::CreateFunction* create_filter = nullptr;
  cudnn::SetFilterFunction* set_filter = nullptr;
  cudnn::DestroyFunction* destroy_filter = nullptr;
  cudnn::CreateFunction* create_convolution = nullptr;
  cudnn::SetConvolutionFunction* set_convolution = nullptr;
  cudnn::SetIntFunction* set_groups = nullptr;
  cudnn::SetIntFunction* set_math = nullptr;
  cudnn::DestroyFunction* destroy_convolution = nullptr;
  PassFunctions forward;
  PassFunctions backward_data;
  PassFunctions backward_filter;

  const PassFunctions& Of(CudnnPass pass) const {
    switch (pass) {
      case CudnnPass::kForward:
        return forward;
      case CudnnPass::kBackwardData:
        return backward_data;
      case CudnnPass::kBackwardFilter:
        break;
    }
    return backward_filter;
  }
};

bool FindAll(SharedLibrary* at, Library* library) {
  return at->Find("cudnnCreate", &library->create) &&
         at->Find("cudnnSetStream", &library->set_stream) &&
         at->Find("cudnnGetErrorString", &library->error) &&
         at->Find("cudnnCreateTensorDescriptor", &library->create_tensor) &&
         at->Find("cudnnSetTensorNdDescriptor", &library->set_tensor) &&
         at->Find("cudnnDestroyTensorDescriptor", &library->destroy_tensor) &&
         at->Find("cudnnCreateFilterDescriptor", &library->create_filter) &&
         at->Find("cudnnSetFilterNdDescriptor", &library->set_filter) &&
         at->Find("cudnnDestroyFilterDescriptor", &library->destroy_filter) &&
         at->Find("cudnnCreateConvolutionDescriptor", &library->create_convolution) &&
         at->Find("cudnnSetConvolutionNdDescriptor", &library->set_convolution) &&
         at->Find("cudnnSetConvolutionGroupCount", &library->set_groups) &&
         at->Find("cudnnSetConvolutionMathType", &library->set_math) &&
         at->Find("cudnnDestroyConvolutionDescriptor", &library->destroy_convolution) &&
         at->Find("cudnnGetConvolutionForwardAlgorithm_v7", &library->forward.choose) &&
         at->Find("cudnnGetConvolutionForwardWorkspaceSize", &library->forward.workspace_bytes) &&
         at->Find("cudnnConvolutionForward", &library->forward.run) &&
         at->Find("cudnnGetConvolutionBackwardDataAlgorithm_v7", &library->backward_data.choose) &&
         at->Find("cudnnGetConvolutionBackwardDataWorkspaceSize",
                  &library->backward_data.workspace_bytes) &&
         at->Find("cudnnConvolutionBackwardData", &library->backward_data.run) &&
         at->Find("cudnnGetConvolutionBackwardFilterAlgorithm_v7",
                  &library->backward_filter.choose) &&
         at->Find("cudnnGetConvolutionBackwardFilterWorkspaceSize",
                  &library->backward_filter.workspace_bytes) &&
         at->Find("cudnnConvolutionBackwardFilter", &library->backward_filter.run);
}

const Library* Load() {
  static Library library;
  std::string failure;
  for (const char* name : {"libcudnn.so.9", "libcudnn.so.8"}) {
    SharedLibrary loaded(name, {kCudaLibraryFolder});
    if (FindAll(&loaded, &library)) return &library;
    failure += StrCat(failure.empty() ? "" : "; ", loaded.failure());
  }
  std::fprintf(stderr, "warning: convolutions run on slower kernels: %s\n", failure.c_str());
  return nullptr;
}

// The library; nullptr if it is missing.
const Library* TheLibrary() {
  static const Library* const library = Load();
  return library;
}

void Check(int status, const char* call) {
  SKIFF_ENFORCE(status == kSuccess, kIo, "cuDNN: ", call, ": ", TheLibrary()->error(status));
}

int CurrentDevice() {
  int device = 0;
  const cudaError_t status = cudaGetDevice(&device);
  SKIFF_ENFORCE(status == cudaSuccess, kIo, "cuDNN: cudaGetDevice: ", cudaGetErrorString(status));
  return device;
}

// The library's state on a device, for one thread at a time. Never destroyed, since the driver may
// be gone at exit.
struct Handle {
  std::mutex mutex;
  Pointer pointer = nullptr;
};

Handle& HandleOf(int device) {
  static std::mutex mutex;
  static auto& handles = *new std::map<int, Handle>;
  const std::lock_guard lock(mutex);
  Handle& handle = handles[device];
  if (handle.pointer == nullptr) Check(TheLibrary()->create(&handle.pointer), "cudnnCreate");
  return handle;
}

// A descriptor of the library, destroyed with the object.
class Descriptor {
 public:
  Descriptor(int (*create)(Pointer*), int (*destroy)(Pointer)) : destroy_(destroy) {
    Check(create(&pointer_), "to create a descriptor");
  }
  ~Descriptor() { destroy_(pointer_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Pointer get() const { return pointer_; }

 private:
  Pointer pointer_ = nullptr;
  int (*destroy_)(Pointer);
};

int TypeOf(DType dtype) {
  if (dtype == DType::kBFloat16) return cudnn::kBFloat16;
  return dtype == DType::kFloat16 ? cudnn::kFloat16 : cudnn::kFloat;
}

// Throws Error if the library refuses the numbers.
class Descriptors {
 public:
  explicit Descriptors(const CudnnConvolutionSpec& spec)
      : pass_(spec.pass),
        input_(TheLibrary()->create_tensor, TheLibrary()->destroy_tensor),
        filter_(TheLibrary()->create_filter, TheLibrary()->destroy_filter),
        output_(TheLibrary()->create_tensor, TheLibrary()->destroy_tensor),
        convolution_(TheLibrary()->create_convolution, TheLibrary()->destroy_convolution) {
    const Library& library = *TheLibrary();
    const int dims = spec.axes + 2;
    const int type = TypeOf(spec.dtype);
    SetTensor(type, spec.input, dims, input_);
    SetTensor(type, spec.output, dims, output_);
    Check(library.set_filter(filter_.get(), type, cudnn::kChannelsFirst, dims, spec.filter.data()),
          "cudnnSetFilterNdDescriptor");
    Check(library.set_convolution(convolution_.get(), spec.axes, spec.padding.data(),
                                  spec.stride.data(), spec.dilation.data(),
                                  cudnn::kCrossCorrelation, cudnn::kFloat),
          "cudnnSetConvolutionNdDescriptor");
    Check(library.set_groups(convolution_.get(), spec.groups), "cudnnSetConvolutionGroupCount");
    // For float32, the default would allow TF32.
    const bool on_tensor_cores = IsHalf(spec.dtype) || spec.math == MathMode::kTf32;
    const int math = on_tensor_cores ? cudnn::kTensorCores : cudnn::kFusedSums;
    Check(library.set_math(convolution_.get(), math), "cudnnSetConvolutionMathType");
  }

  Pointer convolution() const { return convolution_.get(); }
  // In the order of the arguments of the library's functions, which isn't the same for all passes.
  Pointer first() const {
    switch (pass_) {
      case CudnnPass::kForward:
      case CudnnPass::kBackwardFilter:
        return input_.get();
      case CudnnPass::kBackwardData:
        break;
    }
    return filter_.get();
  }
  Pointer second() const { return pass_ == CudnnPass::kForward ? filter_.get() : output_.get(); }
  Pointer result() const {
    switch (pass_) {
      case CudnnPass::kForward:
        return output_.get();
      case CudnnPass::kBackwardData:
        return input_.get();
      case CudnnPass::kBackwardFilter:
        break;
    }
    return filter_.get();
  }

 private:
  static void SetTensor(int type, const std::array<int32_t, 5>& sizes, int dims,
                        const Descriptor& descriptor) {
    std::array<int, 5> strides{};
    int64_t stride = 1;
    for (int i = dims - 1; i >= 0; --i) {
      strides[static_cast<size_t>(i)] = static_cast<int>(stride);
      stride *= sizes[static_cast<size_t>(i)];
    }
    Check(TheLibrary()->set_tensor(descriptor.get(), type, dims, sizes.data(), strides.data()),
          "cudnnSetTensorNdDescriptor");
  }

  CudnnPass pass_;
  Descriptor input_;
  Descriptor filter_;
  Descriptor output_;
  Descriptor convolution_;
};

struct Choice {
  int algorithm = 0;
  size_t workspace_bytes = 0;
};

// The library asks for this; workspaces of kernels have less.
constexpr int64_t kWorkspaceAlignment = 256;
constexpr int64_t kKernelWorkspaceAlignment = 64;
// A workspace is in the arena while its op runs, so that a run may take as much more memory.
constexpr size_t kMaxWorkspaceBytes = size_t{512} << 20;

// Returns the workspace that kernels may have without giving way to others (kernel_choice.h), even
// where a copy of the filter adds to it. Another algorithm of the library's is better than no
// library.
size_t ModestWorkspaceBytes(const CudnnConvolutionSpec& spec) {
  const auto bytes_of = [&spec](const std::array<int32_t, 5>& dims) {
    int64_t bytes = SizeOf(spec.dtype);
    for (int i = 0; i < spec.axes + 2; ++i) bytes *= dims[static_cast<size_t>(i)];
    return bytes;
  };
  const int64_t filter = bytes_of(spec.filter);
  const int64_t modest =
      ModestScratchBytes(bytes_of(spec.input) + filter + bytes_of(spec.output), Place::Cuda());
  return std::min(
      static_cast<size_t>(modest - filter - (kWorkspaceAlignment - kKernelWorkspaceAlignment)),
      kMaxWorkspaceBytes);
}

// Returns whether Winograd's algorithm comes first. The estimate of cuDNN 9 often puts it last. For
// the convolutions of VGG-16 and ResNet-50 with 3x3 filters, batch 64, on an H100, it takes 0.1 to
// 1.2 of the time of the first other deterministic algorithm that fits; with 16 and 32 channels, as
// in ResNet-20, 0.7 to 2 times as long.
bool PrefersWinograd(const CudnnConvolutionSpec& spec) {
  constexpr int32_t kFewestChannels = 64;
  if (IsHalf(spec.dtype) || spec.math != MathMode::kFull) return false;
  if (spec.axes != 2 || spec.groups != 1) return false;
  for (size_t axis = 0; axis < 2; ++axis) {
    if (spec.filter[2 + axis] != 3 || spec.stride[axis] != 1 || spec.dilation[axis] != 1)
      return false;
  }
  return std::min(spec.filter[0], spec.filter[1]) >= kFewestChannels;
}

// Returns whether results may be those of the algorithm: it adds in a fixed order and rounds no
// factor but as MathMode says; in TF32, cuDNN may also round what it has transformed. In half,
// algorithms that transform (FFT, Winograd's, which have the last numbers) would round what they
// have transformed.
bool MayTake(const CudnnConvolutionSpec& spec, const Algorithm& algorithm) {
  if (algorithm.status != kSuccess || algorithm.determinism != cudnn::kDeterministic) return false;
  if (algorithm.math == cudnn::kRoundToTensorCores) return false;
  if (!IsHalf(spec.dtype)) {
    return algorithm.math != cudnn::kTensorCores || spec.math == MathMode::kTf32;
  }
  return algorithm.algorithm <
         (spec.pass == CudnnPass::kForward ? cudnn::kFftForward : cudnn::kFftBackward);
}

// Returns the fastest algorithm with a modest workspace; if none has, the one that takes least.
// Throws Error if the library refuses the numbers, such as a group count that it doesn't take.
std::optional<Choice> Choose(const CudnnConvolutionSpec& spec, Handle& handle) {
  const Library& library = *TheLibrary();
  const PassFunctions& functions = library.Of(spec.pass);
  const std::lock_guard lock(handle.mutex);
  const Descriptors descriptors(spec);
  std::array<Algorithm, 16> found{};
  int count = 0;
  const int status = functions.choose(handle.pointer, descriptors.first(), descriptors.second(),
                                      descriptors.convolution(), descriptors.result(),
                                      static_cast<int>(found.size()), &count, found.data());
  // Another number in each version.
  if (std::string_view(library.error(status)) == "CUDNN_STATUS_NOT_SUPPORTED") return std::nullopt;
  Check(status, "to ask for algorithms");
  // By the library's estimate, the fastest are the first.
  const std::span<Algorithm> algorithms(found.data(), static_cast<size_t>(count));
  if (PrefersWinograd(spec)) {
    const int winograd =
        spec.pass == CudnnPass::kForward ? cudnn::kWinogradForward : cudnn::kWinogradBackward;
    std::ranges::stable_partition(
        algorithms, [winograd](int algorithm) { return algorithm == winograd; },
        &Algorithm::algorithm);
  }
  const size_t modest = ModestWorkspaceBytes(spec);
  std::optional<Choice> least;
  for (const Algorithm& algorithm : algorithms) {
    if (!MayTake(spec, algorithm)) continue;
    Choice choice{.algorithm = algorithm.algorithm};
    const int of_size = functions.workspace_bytes(
        handle.pointer, descriptors.first(), descriptors.second(), descriptors.convolution(),
        descriptors.result(), choice.algorithm, &choice.workspace_bytes);
    if (of_size != kSuccess || choice.workspace_bytes > kMaxWorkspaceBytes) continue;
    if (choice.workspace_bytes <= modest) return choice;
    if (!least || choice.workspace_bytes < least->workspace_bytes) least = choice;
  }
  return least;
}

// Asks once in a process: a plan that is made again takes the same algorithms.
std::optional<Choice> ChoiceFor(const CudnnConvolutionSpec& spec) {
  static std::mutex mutex;
  static auto& choices = *new std::map<std::pair<int, CudnnConvolutionSpec>, std::optional<Choice>>;
  const std::lock_guard lock(mutex);
  const std::pair key(CurrentDevice(), spec);
  const auto found = choices.find(key);
  if (found != choices.end()) return found->second;
  Handle& handle = HandleOf(key.first);
  try {
    return choices[key] = Choose(spec, handle);
  } catch (const Error& error) {
    static bool has_warned = false;
    if (!std::exchange(has_warned, true)) {
      std::fprintf(stderr, "warning: a convolution runs on a slower kernel: %s\n", error.what());
    }
    return choices[key] = std::nullopt;
  }
}

class LoadedConvolution final : public CudnnConvolution {
 public:
  LoadedConvolution(const CudnnConvolutionSpec& spec, const Choice& choice)
      : pass_(spec.pass), choice_(choice), descriptors_(spec), handle_(HandleOf(CurrentDevice())) {}

  int64_t workspace_bytes() const override {
    if (choice_.workspace_bytes == 0) return 0;
    return static_cast<int64_t>(choice_.workspace_bytes) + kWorkspaceAlignment -
           kKernelWorkspaceAlignment;
  }

  void Run(CUstream_st* stream, const void* first, const void* second, void* result,
           void* workspace, bool adds) const override {
    const Library& library = *TheLibrary();
    const float alpha = 1;
    const float beta = adds ? 1 : 0;
    void* memory = nullptr;
    if (choice_.workspace_bytes > 0) {
      memory = reinterpret_cast<void*>(RoundUp(
          static_cast<int64_t>(reinterpret_cast<uintptr_t>(workspace)), kWorkspaceAlignment));
    }
    // The library takes the filter before the output's gradient, and the input before it.
    if (pass_ != CudnnPass::kForward) std::swap(first, second);
    const std::lock_guard lock(handle_.mutex);
    Check(library.set_stream(handle_.pointer, stream), "cudnnSetStream");
    Check(library.Of(pass_).run(handle_.pointer, &alpha, descriptors_.first(), first,
                                descriptors_.second(), second, descriptors_.convolution(),
                                choice_.algorithm, memory, choice_.workspace_bytes, &beta,
                                descriptors_.result(), result),
          "convolution");
  }

 private:
  CudnnPass pass_;
  Choice choice_;
  Descriptors descriptors_;
  Handle& handle_;
};

}  // namespace

bool CudnnConvolution::Supports(const CudnnConvolutionSpec& spec) {
  return TheLibrary() != nullptr && ChoiceFor(spec).has_value();
}

std::unique_ptr<CudnnConvolution> CudnnConvolution::Make(const CudnnConvolutionSpec& spec) {
  const std::optional<Choice> choice = TheLibrary() != nullptr ? ChoiceFor(spec) : std::nullopt;
  SKIFF_ENFORCE(choice, kUnimplemented, "cuDNN: it has no such convolution, or is missing");
  return std::make_unique<LoadedConvolution>(spec, *choice);
}

}  // namespace skiff
