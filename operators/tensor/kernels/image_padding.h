// Borders around images: pad2d and pad3d. pad2d's images are planes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/op/registry.h"
#include "operators/tensor/kernels/padding.h"

namespace skiff {

// The value of a border pixel: a constant, the image mirrored at its first and last pixel (which
// aren't repeated), the nearest pixel of the image, or a pixel of the image repeated endlessly.
enum class BorderMode { kConstant, kReflect, kEdge, kWrap };

// An axis of an image with a border. A border of kReflect is smaller than the image, and `extent`
// is positive unless there is none.
struct PaddedAxis {
  int64_t extent = 1;  // of the image
  int64_t before = 0;
  int64_t padded = 1;
  BorderMode mode = BorderMode::kConstant;

  // Returns the position in the image that position `at` of the result shows. Not for kConstant.
  constexpr int64_t Source(int64_t at) const {
    const int64_t beyond = at - before;
    if (mode == BorderMode::kWrap) {
      const int64_t rest = beyond % extent;
      return rest < 0 ? rest + extent : rest;
    }
    if (mode == BorderMode::kEdge) return beyond < 0 ? 0 : beyond < extent ? beyond : extent - 1;
    const int64_t distance = beyond < 0 ? -beyond : beyond;
    const int64_t mirrored = 2 * (extent - 1) - distance;
    return distance < mirrored ? distance : mirrored;
  }
  // Calls body for all positions of the result that show position `source` of the image.
  template <typename Body>
  constexpr void ForEachCopy(int64_t source, const Body& body) const {
    const int64_t own = source + before;
    if (mode == BorderMode::kWrap) {
      for (int64_t at = own % extent; at < padded; at += extent) body(at);
      return;
    }
    if (mode == BorderMode::kEdge) {
      const int64_t first = source == 0 ? 0 : own;
      const int64_t last = source == extent - 1 ? padded - 1 : own;
      for (int64_t at = first; at <= last; ++at) body(at);
      return;
    }
    if (source > 0 && source <= before) body(before - source);
    body(own);
    const int64_t behind = before + 2 * (extent - 1) - source;
    if (source < extent - 1 && behind < padded) body(behind);
  }
};

// Images [outer, planes, rows, columns, inner].
struct PaddedImages {
  int64_t outer = 1;
  PaddedAxis planes;
  PaddedAxis rows;
  PaddedAxis columns;
  int64_t inner = 1;
};

struct ImagePadFacts {
  StaticText type;
  StaticText x_doc;
  StaticText paddings_doc;
  StaticText value_attr;
  std::vector<StaticText> modes;
  std::vector<StaticText> formats;
};

// Registers the op and <type>_grad with their CPU kernels.
void AddImagePadOps(OpRegistry& registry, const ImagePadFacts& facts);

// The borders by the attributes of such an op. Except in BordersOfImages, the shape of X must be
// known. BordersOfImages throws Error if attributes and shape don't fit.
Borders BordersOfImages(const OpContext& context, const Shape& x);
BorderMode BorderModeOf(const OpContext& context);
PaddedImages PaddedImagesOf(const OpContext& context, const Shape& x);
// Returns the name of the attribute that has the value of a constant border.
std::string_view PadValueAttr(const OpContext& context);

}  // namespace skiff
