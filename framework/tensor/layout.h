// How the elements of a tensor lie in memory.
#pragma once

#include <cstdint>
#include <ostream>

#include "framework/base/dtype.h"
#include "framework/tensor/shape.h"

namespace skiff {

// kPlain: row-major over the shape (NCHW for an image batch).
// Blocked by B: a [N, C, H, W] tensor lies as [N, ceil(C/B), H, W, B]; the channels that fill up
// the last block are zero. Only activations inside a plan are blocked: what a user sees, feeds,
// fetches or saves is plain.
struct Layout {
  int32_t channel_block = 1;

  static Layout Plain() { return {}; }
  static Layout Blocked(int32_t block) { return {block}; }

  bool is_plain() const { return channel_block == 1; }
  friend bool operator==(const Layout&, const Layout&) = default;
};

// Elements that a tensor of `shape` occupies, padding included. Error for a blocked layout of a
// rank below 2, for an unknown dim and for overflow.
int64_t StorageElements(const Shape& shape, Layout layout);

// "plain" or "blocked16".
std::ostream& operator<<(std::ostream& stream, Layout layout);

}  // namespace skiff
