// Which of cuDNN's algorithms run. The library is a stand-in (tools/cuda/emulation/libraries),
// which offers some that mustn't, and for each size others.
#include "operators/common/libraries/cudnn_convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

namespace skiff {
namespace {

using ::testing::HasSubstr;

CudnnConvolutionSpec ConvolutionOf(CudnnPass pass, int32_t batch, int32_t channels) {
  return {.pass = pass,
          .input = {batch, channels, 4, 4},
          .filter = {channels, channels, 3, 3},
          .output = {batch, channels, 4, 4},
          .padding = {1, 1},
          .stride = {1, 1},
          .dilation = {1, 1}};
}

// Returns how many of 55 batches, which meet all of the stand-in's answers, have an algorithm with
// so many bytes of workspace; -1 bytes: the library has none for the batch.
std::map<int64_t, int> WorkspacesOf(CudnnPass pass, int32_t channels,
                                    MathMode math = MathMode::kFull,
                                    DType dtype = DType::kFloat32) {
  std::map<int64_t, int> counts;
  for (int32_t batch = 1; batch <= 55; ++batch) {
    CudnnConvolutionSpec spec = ConvolutionOf(pass, batch, channels);
    spec.math = math;
    spec.dtype = dtype;
    ++counts[CudnnConvolution::Supports(spec) ? CudnnConvolution::Make(spec)->workspace_bytes()
                                              : -1];
  }
  return counts;
}

// A workspace of the library begins at a multiple of 256 bytes, that of a kernel of 64.
constexpr int64_t kRoom = 192;

TEST(CudnnConvolution, TakesTheFirstAlgorithmThatAddsInAFixedOrder) {
  for (const CudnnPass pass :
       {CudnnPass::kForward, CudnnPass::kBackwardData, CudnnPass::kBackwardFilter}) {
    const std::map<int64_t, int> counts = WorkspacesOf(pass, 2);
    EXPECT_GT(counts.at(0), 10);
    EXPECT_GT(counts.at(776 + kRoom), 10);
    EXPECT_EQ(counts.at(-1), 8) << "two of eleven, but for those with a large workspace";
  }
}

// The stand-in has one for every second size, without a workspace, and puts it before others.
TEST(CudnnConvolution, TakesTensorCoresInTf32) {
  for (const CudnnPass pass :
       {CudnnPass::kForward, CudnnPass::kBackwardData, CudnnPass::kBackwardFilter}) {
    const std::map<int64_t, int> full = WorkspacesOf(pass, 2);
    const std::map<int64_t, int> rounded = WorkspacesOf(pass, 2, MathMode::kTf32);
    EXPECT_GT(rounded.at(0), full.at(0) + 5);
    EXPECT_GT(rounded.at(776 + kRoom), 5) << "those that convert to other types mustn't run";
  }
}

TEST(CudnnConvolution, PrefersWinogradsOfManyChannels) {
  for (const CudnnPass pass :
       {CudnnPass::kForward, CudnnPass::kBackwardData, CudnnPass::kBackwardFilter}) {
    EXPECT_GT(WorkspacesOf(pass, 64).at(520 + kRoom), 10);
    EXPECT_EQ(WorkspacesOf(pass, 63).count(520 + kRoom), 0U);
  }
}

// Of half, the stand-in offers one product, behind an FFT and Winograd's.
TEST(CudnnConvolution, TakesProductsOfHalfOnly) {
  for (const CudnnPass pass :
       {CudnnPass::kForward, CudnnPass::kBackwardData, CudnnPass::kBackwardFilter}) {
    for (const DType half : {DType::kBFloat16, DType::kFloat16}) {
      const std::map<int64_t, int> expected = {{0, 16}, {776 + kRoom, 29}, {-1, 10}};
      EXPECT_EQ(WorkspacesOf(pass, 64, MathMode::kFull, half), expected) << "-1: two of eleven";
    }
  }
}

// Another algorithm of the library's is better than no library.
TEST(CudnnConvolution, TakesALargeWorkspaceIfThereIsNoOther) {
  int large = 0;
  for (const auto& [bytes, count] : WorkspacesOf(CudnnPass::kForward, 2)) {
    if (bytes > 1 << 20) large += count;
  }
  EXPECT_EQ(large, 11) << "one of five";
}

// The kernels of our own run then. One warning will do.
TEST(CudnnConvolution, WarnsOnceIfTheLibraryRefusesTheSizes) {
  CudnnConvolutionSpec spec = ConvolutionOf(CudnnPass::kForward, 3, 2);
  const auto warning_of = [&spec](int32_t wrong_width) {
    spec.output[3] = wrong_width;
    testing::internal::CaptureStderr();
    EXPECT_FALSE(CudnnConvolution::Supports(spec));
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warning_of(5), HasSubstr("warning: a convolution runs on a slower kernel: cuDNN: to "
                                       "ask for algorithms: CUDNN_STATUS_BAD_PARAM\n"));
  EXPECT_EQ(warning_of(6), "");
}

}  // namespace
}  // namespace skiff
