// Buffers taken as one, so that a search has fewer to place.
//
// If one buffer dies where another of just its size is born, the second may well lie in the place
// of the first; the same holds for two stacks of buffers with equal lives whose sizes sum to the
// same. Where sizes are arbitrary numbers, such a match is hardly ever a coincidence: it is the cut
// that once made both out of one. So a search for a tight placement first takes them as one
// rectangle, and joins what that matches in turn. It is a guess: that the joined set doesn't fit
// says nothing of the set itself.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "memory/search_buffer.h"

namespace skiff {

class JoinedBuffers {
 public:
  // Buffers with an alignment above 1 are left as they are.
  explicit JoinedBuffers(std::span<const SearchBuffer> buffers);

  const std::vector<SearchBuffer>& buffers() const { return joined_; }
  // The offsets of the buffers that went in, from those of buffers().
  std::vector<int64_t> OffsetsOfParts(std::span<const int64_t> offsets) const;
  // What the time to find them goes by, as SkylineSearch counts it.
  int64_t steps() const { return kStepsPerStack * looked_at_; }

 private:
  struct Node {
    SearchBuffer buffer;
    bool is_joined = false;       // part of a later node
    bool is_stack = false;        // the second part lies on the first one, else behind it
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

  std::vector<Node> nodes_;  // the input buffers, then what was joined
  size_t input_count_;
  int64_t looked_at_ = 0;  // stacks and matches, of all rounds
  std::vector<SearchBuffer> joined_;
  std::vector<int32_t> node_of_joined_;
};

}  // namespace skiff
