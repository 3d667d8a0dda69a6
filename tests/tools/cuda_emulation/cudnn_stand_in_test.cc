// What the stand-in for cuDNN refuses of convolutions in half.
#include "tools/cuda/emulation/libraries/cudnn_stand_in.h"

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "operators/common/half.h"
#include "operators/common/libraries/cudnn_declarations.h"

namespace skiff::cuda_emulation {
namespace {

constexpr int kBadParam = 2000;
constexpr int kNotSupported = 3000;

template <class Function, class... Arguments>
int Call(const char* name, Arguments... arguments) {
  return reinterpret_cast<Function*>(CudnnFunction(name))(arguments...);
}

cudnn::Pointer Make(const char* name) {
  cudnn::Pointer made = nullptr;
  EXPECT_EQ(Call<cudnn::CreateFunction>(name, &made), cudnn::kSuccess);
  return made;
}

// Images [batch, 1, 4, 4] and a filter [1, 1, 3, 3], with a padding of 1. The defaults are right.
struct Settings {
  int batch = 1;
  int input = cudnn::kBFloat16;
  int filter = cudnn::kBFloat16;
  int output = cudnn::kBFloat16;
  int math = cudnn::kTensorCores;
};

constexpr int kProduct = 1;

class Convolution {
 public:
  explicit Convolution(const Settings& settings)
      : handle_(Make("cudnnCreate")),
        input_(Make("cudnnCreateTensorDescriptor")),
        filter_(Make("cudnnCreateFilterDescriptor")),
        output_(Make("cudnnCreateTensorDescriptor")),
        convolution_(Make("cudnnCreateConvolutionDescriptor")) {
    Call<cudnn::SetStreamFunction>("cudnnSetStream", handle_, cudaStream_t{});
    const std::array sizes = {settings.batch, 1, 4, 4};
    const std::array strides = {16, 16, 4, 1};
    const std::array filter_sizes = {1, 1, 3, 3};
    for (const auto& [tensor, type] :
         {std::pair(input_, settings.input), {output_, settings.output}}) {
      EXPECT_EQ(Call<cudnn::SetTensorFunction>("cudnnSetTensorNdDescriptor", tensor, type, 4,
                                               sizes.data(), strides.data()),
                cudnn::kSuccess);
    }
    EXPECT_EQ(Call<cudnn::SetFilterFunction>("cudnnSetFilterNdDescriptor", filter_, settings.filter,
                                             cudnn::kChannelsFirst, 4, filter_sizes.data()),
              cudnn::kSuccess);
    EXPECT_EQ(SetSums(cudnn::kFloat), cudnn::kSuccess);
    Call<cudnn::SetIntFunction>("cudnnSetConvolutionMathType", convolution_, settings.math);
  }

  int SetSums(int type) const {
    const std::array ones = {1, 1};
    return Call<cudnn::SetConvolutionFunction>("cudnnSetConvolutionNdDescriptor", convolution_, 2,
                                               ones.data(), ones.data(), ones.data(),
                                               cudnn::kCrossCorrelation, type);
  }

  int Choose(std::vector<cudnn::Algorithm>* algorithms) const {
    algorithms->resize(8);
    int count = 0;
    const int status =
        Call<cudnn::ChooseFunction>("cudnnGetConvolutionForwardAlgorithm_v7", handle_, input_,
                                    filter_, convolution_, output_, 8, &count, algorithms->data());
    algorithms->resize(static_cast<size_t>(count));
    return status;
  }

  int Run(int algorithm, const void* input, const void* filter, void* output) const {
    const float alpha = 1;
    const float beta = 0;
    alignas(256) static std::array<char, 1024> workspace;
    return Call<cudnn::RunFunction>("cudnnConvolutionForward", handle_, &alpha, input_, input,
                                    filter_, filter, convolution_, algorithm, workspace.data(),
                                    workspace.size(), &beta, output_, output);
  }

 private:
  cudnn::Pointer handle_;
  cudnn::Pointer input_;
  cudnn::Pointer filter_;
  cudnn::Pointer output_;
  cudnn::Pointer convolution_;
};

int StatusOf(const Settings& settings) {
  std::vector<cudnn::Algorithm> algorithms;
  return Convolution(settings).Choose(&algorithms);
}

TEST(CudnnStandIn, RefusesHandlesAndStreamsOfAnotherDevice) {
  const cudnn::Pointer handle = Make("cudnnCreate");
  const auto set = [&](cudaStream_t stream) {
    return Call<cudnn::SetStreamFunction>("cudnnSetStream", handle, stream);
  };
  std::vector<cudnn::Algorithm> algorithms;
  const Convolution convolution({});
  cudaStream_t stream = nullptr;
  EXPECT_EQ(convolution.Choose(&algorithms), cudnn::kSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(convolution.Choose(&algorithms), kBadParam);
  EXPECT_EQ(set(stream), kBadParam) << "the handle is the first device's";
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(set(stream), kBadParam) << "the stream is the second device's";
  EXPECT_EQ(set(nullptr), cudnn::kSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

TEST(CudnnStandIn, WantsOneTypeOfAllTensors) {
  EXPECT_EQ(StatusOf({}), cudnn::kSuccess);
  EXPECT_EQ(StatusOf({.input = cudnn::kFloat16}), kBadParam);
  EXPECT_EQ(StatusOf({.filter = cudnn::kFloat}), kBadParam);
  EXPECT_EQ(StatusOf({.output = cudnn::kFloat}), kBadParam);
}

constexpr Settings kFloat32{
    .input = cudnn::kFloat, .filter = cudnn::kFloat, .output = cudnn::kFloat};

// The default would round factors of float32 without being asked.
TEST(CudnnStandIn, WantsToBeToldWhetherToUseTensorCores) {
  constexpr int kDefault = 0;
  EXPECT_EQ(StatusOf({.math = cudnn::kTensorCores}), cudnn::kSuccess);
  for (const int math : {kDefault, cudnn::kFusedSums, cudnn::kRoundToTensorCores})
    EXPECT_EQ(StatusOf({.math = math}), kBadParam) << math;
  Settings float32 = kFloat32;
  for (const int math : {cudnn::kTensorCores, cudnn::kFusedSums}) {
    float32.math = math;
    EXPECT_EQ(StatusOf(float32), cudnn::kSuccess) << math;
  }
  for (const int math : {kDefault, cudnn::kRoundToTensorCores}) {
    float32.math = math;
    EXPECT_EQ(StatusOf(float32), kBadParam) << math;
  }
}

// It offers such an algorithm all the same.
TEST(CudnnStandIn, RunsFloat32OnTensorCoresOnlyIfTold) {
  int refused = 0;
  for (int batch = 1; batch <= 11; ++batch) {
    Settings settings = kFloat32;
    settings.batch = batch;
    settings.math = cudnn::kFusedSums;
    const Convolution convolution(settings);
    std::vector<cudnn::Algorithm> algorithms;
    if (convolution.Choose(&algorithms) == kNotSupported) continue;
    alignas(16) float numbers[1];
    for (const cudnn::Algorithm& algorithm : algorithms) {
      if (algorithm.math != cudnn::kTensorCores) continue;
      ++refused;
      EXPECT_EQ(convolution.Run(algorithm.algorithm, numbers, numbers, numbers), kBadParam);
    }
  }
  EXPECT_GT(refused, 2);
}

TEST(CudnnStandIn, HasNoSumsInHalf) {
  const Convolution convolution({});
  EXPECT_EQ(convolution.SetSums(cudnn::kBFloat16), kNotSupported);
  EXPECT_EQ(convolution.SetSums(cudnn::kFloat16), kNotSupported);
}

// Each is offered, so that an adapter must look before it takes one.
TEST(CudnnStandIn, RefusesToRunWhatIsNotOrderedOrTransformsOrRoundsHalf) {
  bool has_rounded = false;
  for (int batch = 1; batch <= 11; ++batch) {
    const Convolution convolution({.batch = batch});
    std::vector<cudnn::Algorithm> algorithms;
    if (convolution.Choose(&algorithms) == kNotSupported) continue;
    ASSERT_EQ(algorithms.size(), 4U) << "the sum in any order, FFT, Winograd's, the product";
    BFloat16 numbers[1];
    for (const cudnn::Algorithm& algorithm : algorithms) {
      const bool rounds = algorithm.math == cudnn::kRoundToTensorCores;
      if (algorithm.algorithm == kProduct && !rounds) continue;
      has_rounded = has_rounded || rounds;
      EXPECT_EQ(convolution.Run(algorithm.algorithm, numbers, numbers, numbers), kBadParam)
          << algorithm.algorithm;
    }
  }
  EXPECT_TRUE(has_rounded);
}

TEST(CudnnStandIn, RefusesHalfAtOddAddresses) {
  const Convolution convolution({});
  alignas(2) std::array<char, 64> bytes{};
  const auto run = [&](int input, int filter, int output) {
    return convolution.Run(kProduct, bytes.data() + input, bytes.data() + filter,
                           bytes.data() + output);
  };
  EXPECT_EQ(run(1, 0, 0), kBadParam);
  EXPECT_EQ(run(0, 1, 0), kBadParam);
  EXPECT_EQ(run(0, 0, 1), kBadParam);
}

}  // namespace
}  // namespace skiff::cuda_emulation
