// What the exporters of convolutions, poolings and normalizations of images share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/onnx/op_export.h"

namespace skiff::onnx_export {

// Returns `x`, which has the shape of the input `slot`, normalized by running statistics: the slots
// Mean, Variance, Scale and Bias. Throws Refusal if the op would take the statistics of the batch.
std::string BatchNormOf(OpExport& op, std::string_view slot, std::string x,
                        const std::string& layout);

// Returns whether a data format says that the channels are the last dim.
bool ChannelsAreLast(const std::string& format);

// Borders of images, by axis.
struct Borders {
  std::vector<int64_t> before;
  std::vector<int64_t> after;

  // Returns the borders in the order of ONNX's attribute `pads`.
  std::vector<int64_t> Pads() const;
};

// Returns the borders that paddings and padding_algorithm of an op say, for images of these
// extents. Throws Refusal if they depend on extents that are unknown.
Borders BordersOf(OpExport& op, const std::vector<int64_t>& extents,
                  const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides);
// The same of an op without padding_algorithm, for images of so many axes.
Borders PaddingsOf(OpExport& op, size_t axes);
// Returns the extents of a tensor's images: the dims but batch and channels.
std::vector<int64_t> ExtentsOf(const Shape& shape, bool channels_last);

}  // namespace skiff::onnx_export
