// The columns of images, for the float64 references of unfold and fold.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {

struct UnfoldingSpec {
  std::string name;
  Shape image;  // N, C, H, W
  std::vector<int32_t> kernel;
  std::vector<int32_t> strides = {1, 1};
  std::vector<int32_t> paddings = {0, 0, 0, 0};  // top, left, bottom, right
  std::vector<int32_t> dilations = {1, 1};

  // The number of windows along the height (0) or the width (1).
  int64_t Windows(size_t axis) const {
    const int64_t reach = int64_t{dilations[axis]} * (kernel[axis] - 1) + 1;
    int64_t count = 0;
    const int64_t padded = image[static_cast<int>(axis) + 2] + paddings[axis] + paddings[axis + 2];
    while (count * strides[axis] + reach <= padded) ++count;
    return count;
  }
  Shape columns() const {
    return {image[0], image[1] * kernel[0] * kernel[1], Windows(0) * Windows(1)};
  }
  AttributeMap attrs() const {
    return {{"kernel_sizes", kernel},
            {"strides", strides},
            {"paddings", paddings},
            {"dilations", dilations}};
  }

  // Calls visit(place in the columns, place in the images) for all that are on an image.
  void ForEach(const std::function<void(size_t, size_t)>& visit) const {
    size_t at = 0;
    for (int64_t channel = 0; channel < image[0] * image[1]; ++channel) {
      for (int64_t i = 0; i < kernel[0]; ++i) {
        for (int64_t j = 0; j < kernel[1]; ++j) {
          for (int64_t y = 0; y < Windows(0); ++y) {
            for (int64_t x = 0; x < Windows(1); ++x, ++at) {
              const int64_t row = y * strides[0] - paddings[0] + i * dilations[0];
              const int64_t column = x * strides[1] - paddings[1] + j * dilations[1];
              if (row < 0 || row >= image[2] || column < 0 || column >= image[3]) continue;
              visit(at, static_cast<size_t>((channel * image[2] + row) * image[3] + column));
            }
          }
        }
      }
    }
  }
};

inline Array ZerosOf(const Shape& shape) {
  return Values(shape, std::vector<double>(static_cast<size_t>(shape.element_count()), 0.0));
}

inline std::vector<UnfoldingSpec> UnfoldingSpecs() {
  return {
      {"squares", {2, 3, 4, 5}, {2, 2}},
      {"one_channel", {1, 1, 3, 3}, {2, 2}},
      {"strips", {2, 1, 4, 5}, {4, 1}},
      {"apart", {1, 2, 5, 7}, {2, 3}, {2, 3}},
      {"gaps", {1, 1, 5, 7}, {1, 2}, {3, 4}},
      {"padded", {2, 2, 3, 4}, {2, 3}, {1, 1}, {1, 1, 1, 1}},
      {"uneven_padding", {2, 1, 4, 4}, {3, 2}, {2, 2}, {0, 1, 2, 3}},
      {"dilated", {1, 2, 7, 8}, {3, 2}, {1, 2}, {2, 1, 2, 1}, {2, 3}},
      {"wider_than_the_image", {1, 1, 2, 2}, {5, 4}, {1, 1}, {2, 2, 2, 2}},
      {"only_padding_in_some", {1, 1, 2, 2}, {2, 2}, {1, 1}, {3, 3, 3, 3}},
      {"one_number", {1, 1, 1, 1}, {1, 1}},
      {"large", {3, 3, 20, 31}, {3, 3}, {1, 1}, {1, 1, 1, 1}},
      {"no_images", {0, 3, 4, 5}, {2, 2}},
  };
}

// Of a convolution in the middle of ResNet.
inline UnfoldingSpec LargeUnfolding() {
  return {"resnet_8x64x56x56", {8, 64, 56, 56}, {3, 3}, {1, 1}, {1, 1, 1, 1}};
}

}  // namespace skiff::harness
