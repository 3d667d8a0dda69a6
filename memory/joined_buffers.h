// Joins buffers that probably belong together, so that a search has fewer to place.
//
// If one buffer dies exactly where another of the same size is born, the second may well take the
// place of the first. The same holds for two stacks of buffers with equal lives whose sizes have
// equal sums. Where sizes are arbitrary numbers, such a match is rarely a coincidence: a cut once
// made two buffers out of one. So a search for a tight placement first treats two matching buffers
// as one rectangle, and joins rectangles that match in turn. This is a guess: if the joined buffers
// don't fit, the original ones still may.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "memory/search_buffer.h"

namespace skiff {

class JoinedBuffers {
 public:
  // Leaves buffers with an alignment above 1 as they are.
  explicit JoinedBuffers(std::span<const SearchBuffer> buffers);

  const std::vector<SearchBuffer>& buffers() const { return joined_; }
  // Returns the offsets of the original buffers, given the offsets of buffers().
  std::vector<int64_t> OffsetsOfParts(std::span<const int64_t> offsets) const;
  // Returns the work done by the constructor, in the units of SkylineSearch::steps().
  int64_t steps() const { return kStepsPerStack * looked_at_; }

 private:
  struct Node {
    SearchBuffer buffer;
    bool is_joined = false;       // part of a later node
    bool is_stack = false;        // the second part is on top of the first; else it follows in time
    int32_t parts[2] = {-1, -1};  // nodes; -1: an input buffer
  };
  // Up to three buffers with the same life.
  struct Stack {
    int32_t first = 0;
    int32_t last = 0;
    int64_t size = 0;
    std::vector<int32_t> nodes = {};
  };
  using Match = std::pair<const Stack*, const Stack*>;

  static constexpr int64_t kStepsPerStack = 50;

  bool JoinMatches();
  std::vector<Stack> FindStacks() const;
  std::vector<Match> FindMatches(const std::vector<Stack>& stacks);
  bool IsFree(const Stack& stack) const;
  int32_t Join(int32_t a, int32_t b, bool is_stack);
  int32_t JoinStack(const Stack& stack);

  std::vector<Node> nodes_;  // the input buffers, then the joined ones
  size_t input_count_;
  int64_t looked_at_ = 0;  // stacks and matches, in all rounds
  std::vector<SearchBuffer> joined_;
  std::vector<int32_t> node_of_joined_;
};

}  // namespace skiff
