// Windows that move over images: of convolutions and pooling.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/builder/variable.h"
#include "framework/onnx/onnx_node.h"

namespace skiff {

// The largest number that a node's window may have: products of two such numbers don't overflow.
inline constexpr int64_t kMostOfWindow = int64_t{1} << 30;

// A window over images of 1 to 3 axes. Skiff's are of 2 or 3: sequences get an axis of extent 1.
struct OnnxWindow {
  size_t axes = 0;  // of the file
  std::vector<int64_t> kernel, strides, dilations, before, after;
};

// Returns the window that the attributes of a node describe, without auto_pad. Refuses other
// numbers of axes, numbers that don't fit them, and negative pads.
OnnxWindow WindowOf(const OnnxNode& node, const Variable& x, std::vector<int64_t> kernel);
// Sets the pads as auto_pad asks, for a window that moves over x. Refuses an extent that only a run
// knows where the window has a stride, and other values of auto_pad.
void ApplyAutoPad(const OnnxNode& node, const Variable& x, OnnxWindow* window);

// Adds the axis of height to a window over sequences.
void MakeTwoAxes(OnnxWindow* window);
// Returns the pads before and after each axis, as Skiff has them.
std::vector<int64_t> PaddingsOf(const OnnxWindow& window);
// Return sequences as images of height 1, and the reverse; images of more axes as they are.
Variable AsImages(const Variable& x, const OnnxWindow& window);
Variable FromImages(const Variable& y, const OnnxWindow& window);

// Returns x pooled by "max" or "avg". Kernel, strides and pads have 3 numbers for volumes, 2 for
// images, and 2 for sequences, by MakeTwoAxes. Dilations don't count.
Variable PooledBy(const OnnxNode& node, const Variable& x, const OnnxWindow& window,
                  const std::string& type, bool ceil_mode, bool exclusive);

}  // namespace skiff
