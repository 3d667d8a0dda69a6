// Winograd convolutions of bfloat16 have the bits of those of float32, rounded, however their work
// is cut.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/str_cat.h"
#include "operators/nn/convolution/winograd_passes.h"
#include "tests/harness/instruction_set.h"

namespace skiff {
namespace {

using Halves = std::vector<BFloat16>;
using Floats = std::vector<float>;

// Memory for so many bytes of floats, aligned as workspaces are.
class Memory {
 public:
  explicit Memory(int64_t bytes) : lines_(static_cast<size_t>((bytes + 63) / 64)) {}
  float* data() { return lines_.empty() ? nullptr : lines_[0].floats; }

 private:
  struct alignas(64) Line {
    float floats[16];
  };
  std::vector<Line> lines_;
};

// `phase` tells one from the other.
Halves Numbers(int64_t count, double phase) {
  Halves numbers(static_cast<size_t>(count));
  for (size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = BFloat16(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + phase)));
  }
  return numbers;
}

Floats Widened(const Halves& numbers) {
  Floats wide;
  for (const BFloat16 number : numbers) wide.push_back(static_cast<float>(number));
  return wide;
}

void ExpectRounded(const Halves& found, const Floats& expected, const std::string& what) {
  int wrong = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    wrong += found[i].bits != BFloat16(expected[i]).bits ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0) << what;
}

// Blocked images of a batch, with numbers in the channels that pad a block, too.
int64_t ImageNumbers(const ImageDims& image) {
  const int64_t lanes = WinogradLanes();
  const int64_t blocks = (image.channels + lanes - 1) / lanes;
  return image.batch * blocks * lanes * image.size[0] * image.size[1];
}

template <typename T>
std::vector<T> Correlated(const Convolution& conv, bool gradient_of_input, int64_t side,
                          const std::vector<T>& images, const std::vector<T>& filters) {
  const WinogradCorrelation<T> correlation(conv, gradient_of_input, side, /*parts=*/2);
  Memory workspace(correlation.workspace_bytes());
  Memory kept(correlation.derived_bytes());
  if (kept.data() != nullptr) correlation.TransformAllFilters(filters.data(), kept.data());
  const ImageDims& outputs = gradient_of_input ? conv.input : conv.output;
  std::vector<T> made(static_cast<size_t>(ImageNumbers(outputs)));
  correlation.Run(images.data(), filters.data(), kept.data(), workspace.data(), {}, made.data());
  return made;
}

template <typename T>
std::vector<T> FilterGradients(const Convolution& conv, int64_t side, const std::vector<T>& images,
                               const std::vector<T>& output_gradients) {
  const WinogradFilterGradient<T> gradient(conv, side, /*parts=*/2);
  Memory workspace(gradient.workspace_bytes());
  std::vector<T> made(static_cast<size_t>(conv.filter_elements()));
  gradient.Run(images.data(), output_gradients.data(), workspace.data(), made.data());
  return made;
}

void ExpectBitsOfFloat32(const Convolution& conv, int64_t side) {
  const Halves images = Numbers(ImageNumbers(conv.input), 1);
  const Halves gradients = Numbers(ImageNumbers(conv.output), 2);
  const Halves filters = Numbers(conv.filter_elements(), 3);
  ExpectRounded(Correlated(conv, false, side, images, filters),
                Correlated(conv, false, side, Widened(images), Widened(filters)), "output");
  ExpectRounded(Correlated(conv, true, side, gradients, filters),
                Correlated(conv, true, side, Widened(gradients), Widened(filters)),
                "gradient of the input");
  ExpectRounded(FilterGradients(conv, side, images, gradients),
                FilterGradients(conv, side, Widened(images), Widened(gradients)),
                "gradient of the filters");
}

// Images of `size` with a border of zeros.
Convolution ConvolutionOf(int64_t batch, int64_t inputs, int64_t outputs, const Extents& size) {
  Convolution conv;
  conv.input = {batch, inputs, size};
  conv.output = {batch, outputs, size};
  conv.window.kernel = {3, 3};
  conv.window.pad_begin = conv.window.pad_end = {1, 1};
  return conv;
}

TEST(Winograd, OfBfloat16HasTheBitsOfFloat32) {
  for (const int64_t set : harness::InstructionSets()) {
    SCOPED_TRACE(harness::InstructionSetName(set));
    const harness::InstructionSetLimit limit(set);
    if (WinogradLanes() < 8) continue;  // has no kernel
    for (const int64_t side : {2, 4}) {
      SCOPED_TRACE(StrCat("tiles of ", side));
      // Incomplete blocks and tiles.
      ExpectBitsOfFloat32(ConvolutionOf(2, 20, 37, {9, 11}), side);
      // Many tiles share few filters.
      ExpectBitsOfFloat32(ConvolutionOf(8, 16, 16, {24, 24}), side);
      // Few tiles share many filters.
      ExpectBitsOfFloat32(ConvolutionOf(1, 256, 256, {4, 4}), side);
    }
  }
}

}  // namespace
}  // namespace skiff
