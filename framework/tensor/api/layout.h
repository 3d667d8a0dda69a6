// The layout of a tensor: how its elements are ordered in memory.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

namespace skiff::internal {

// A tensor is plain, channel-blocked, or selected rows.
//
// Plain: row-major over the shape (NCHW for a batch of images).
//
// Channel-blocked by B: a tensor [N, C, H, W] is stored as [N, ceil(C/B), H, W, B]; the channels
// that fill up the last block are zero. Only activations inside a plan are blocked. Everything that
// users see, feed, fetch or save is plain.
//
// Selected rows: n rows of a dense tensor of `height` rows. Storage holds the values [n, D, …],
// row-major, then, at the next multiple of 8 bytes, the n row numbers as int64. A row number may
// occur several times; the dense tensor holds the sum of its values. A row number of -1 marks an
// unused row with undefined values. All others are in [0, height); whoever writes the row numbers
// ensures that.
struct Layout {
  int32_t channel_block = 1;
  bool selected_rows = false;
  int64_t height = -1;  // of the dense tensor; -1, unknown, is legal outside of a run

  static Layout Plain() { return {}; }
  static Layout Blocked(int32_t block) {
    Layout layout;
    layout.channel_block = block;
    return layout;
  }
  static Layout SelectedRows(int64_t height) {
    Layout layout;
    layout.selected_rows = true;
    layout.height = height;
    return layout;
  }

  bool is_plain() const { return !is_blocked() && !selected_rows; }
  bool is_blocked() const { return channel_block != 1; }
  friend bool operator==(const Layout&, const Layout&) = default;
  // "plain", "blocked16" or "selected_rows(height 100)".
  friend std::string TextOf(Layout layout);
  friend std::ostream& operator<<(std::ostream& stream, Layout layout);
};

}  // namespace skiff::internal
