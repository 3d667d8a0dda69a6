// How many sums the gradient of a filter has with channels last, and cases that have more than one,
// with so little memory for columns that the batch is taken in parts.
#include <gtest/gtest.h>

#include "framework/op/registry.h"
#include "operators/nn/convolution/cuda_convolution.h"
#include "operators/nn/nn_ops.h"
#include "tests/harness/case_test_main.h"
#include "tests/operators/nn/convolution_reference.h"

namespace skiff {
namespace {

constexpr int64_t kMany = 1 << 20;

VolumeConvolution Pointwise(int64_t batch, int64_t channels, int64_t size) {
  const VolumeDims dims{.batch = batch, .channels = channels, .size = {1, size, size}};
  return {.input = dims, .output = dims, .order = ChannelOrder::kLast};
}

int64_t SumsOf(const VolumeConvolution& conv, int64_t most = kMany) {
  return CudaFilterSums(conv, conv.output.batch, conv.output.points(), most);
}

TEST(CudaFilterSums, AreOneForEachImageWhereMoreWouldBeWorthWhile) {
  EXPECT_EQ(SumsOf(Pointwise(32, 64, 56)), 32);  // of ResNet
  EXPECT_EQ(SumsOf(Pointwise(7, 64, 56)), 7);
}

TEST(CudaFilterSums, AreOfAsManyImages) {
  EXPECT_EQ(SumsOf(Pointwise(32, 256, 14)), 16);  // 12 would be worth while
  EXPECT_EQ(SumsOf(Pointwise(128, 512, 28)), 16);
  EXPECT_EQ(SumsOf(Pointwise(31, 512, 7)), 1);  // not 2
}

TEST(CudaFilterSums, AreOneForALargeFilter) { EXPECT_EQ(SumsOf(Pointwise(32, 2048, 28)), 1); }

TEST(CudaFilterSums, FitIntoTheMemory) {
  EXPECT_EQ(SumsOf(Pointwise(32, 64, 56), 31), 16);
  EXPECT_EQ(SumsOf(Pointwise(32, 64, 56), 0), 1);
}

// The cases below.
TEST(CudaFilterSums, AreSeveralInTheCases) {
  const auto sums_of = [](int64_t inputs, int64_t groups, int64_t images, int64_t points) {
    const VolumeConvolution conv{
        .input = {images, inputs}, .output = {images, 4}, .groups = groups};
    return CudaFilterSums(conv, images, points, kMany);
  };
  EXPECT_EQ(sums_of(3, 1, 2, 40 * 40), 2);
  EXPECT_EQ(sums_of(3, 1, 5, 20 * 20), 5);
  EXPECT_EQ(sums_of(4, 2, 4, 16 * 18), 2);
  EXPECT_EQ(sums_of(2, 1, 4, 16 * 16), 2);  // the rest
}

}  // namespace

namespace harness {
namespace {

// Of 16 images of two channels and 256 points in float32, of 8 in float64.
constexpr int64_t kBytes = 32 << 10;

OpCase ChannelsLast(ConvolutionSpec spec) {
  spec.channels_last = true;
  return ConvolutionCase("conv2d", spec);
}

CaseList Cases() {
  return {
      // Two sums, where six would be worth while.
      ChannelsLast(
          {.name = "fewer_images_than_sums", .input = {2, 3, 40, 40}, .filter = {4, 3, 1, 1}}),
      // Five, where three would be.
      ChannelsLast({.name = "five_images", .input = {5, 3, 20, 20}, .filter = {4, 3, 1, 1}}),
      // Two of each group.
      ChannelsLast(
          {.name = "sums_of_groups", .input = {4, 4, 16, 18}, .filter = {4, 2, 1, 1}, .groups = 2}),
      // The last part has four images, of which it makes two sums.
      ChannelsLast({.name = "sums_of_the_rest",
                    .input = {20, 2, 31, 31},
                    .filter = {4, 2, 1, 1},
                    .stride = {2, 2}}),
  };
}

}  // namespace
}  // namespace harness
}  // namespace skiff

int main(int argc, char** argv) {
  skiff::CudaColumnBytes() = skiff::harness::kBytes;
  skiff::OpRegistry registry;
  skiff::RegisterNnOps(registry);
  return skiff::harness::RunCudaCaseTests(&argc, argv, registry, skiff::harness::Cases());
}
