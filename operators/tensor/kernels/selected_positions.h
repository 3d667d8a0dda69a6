// The positions of a tensor that a condition selects, numbered in order, for where_index and
// masked_select.
#pragma once

#include <algorithm>
#include <cstdint>

#include "framework/base/parallel.h"

namespace skiff {

template <typename Selects>
class SelectedPositions {
 public:
  // The bytes of the workspace for `count` positions.
  static int64_t WorkspaceBytes(int64_t count) {
    return BlocksOf(count) * static_cast<int64_t>(sizeof(int64_t));
  }

  // Counts the positions below `count` for which selects(position) holds. The workspace must
  // outlive the object.
  SelectedPositions(int64_t count, const Selects& selects, void* workspace)
      : count_(count), selects_(selects), firsts_(static_cast<int64_t*>(workspace)) {
    ForEachBlock([&](int64_t block, int64_t begin, int64_t end) {
      int64_t selected = 0;
      for (int64_t i = begin; i < end; ++i) selected += selects_(i) ? 1 : 0;
      firsts_[block] = selected;
    });
    for (int64_t block = 0; block < BlocksOf(count_); ++block) {
      const int64_t selected = firsts_[block];
      firsts_[block] = size_;
      size_ += selected;
    }
  }

  // How many are selected.
  int64_t size() const { return size_; }

  // Calls visit(position, number among the selected positions), on several threads.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    ForEachBlock([&](int64_t block, int64_t begin, int64_t end) {
      int64_t number = firsts_[block];
      for (int64_t i = begin; i < end; ++i) {
        if (selects_(i)) visit(i, number++);
      }
    });
  }

 private:
  static constexpr int64_t kBlock = 16384;

  static int64_t BlocksOf(int64_t count) { return (count + kBlock - 1) / kBlock; }

  template <typename Body>
  void ForEachBlock(const Body& body) const {
    ParallelFor(BlocksOf(count_), 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block)
        body(block, block * kBlock, std::min(count_, (block + 1) * kBlock));
    });
  }

  int64_t count_;
  Selects selects_;
  int64_t* firsts_;  // the number of the first one selected in each block
  int64_t size_ = 0;
};

}  // namespace skiff
