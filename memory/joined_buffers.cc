#include "memory/joined_buffers.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace skiff {
namespace {

// The most buffers with the same life to consider. With more, there would be too many stacks of
// three.
constexpr size_t kMaxGroup = 20;
// The most buffers in two matching stacks: among many buffers, some have any given sum.
constexpr size_t kMaxBuffersOfMatch = 4;
// Each round joins at least two buffers, so this bounds the time.
constexpr int kMaxRounds = 100;
// The most stacks and matches in all rounds. Only hundreds of equal buffers have more, and their
// matches are mere coincidences.
constexpr int64_t kMaxLookedAt = 500'000;

}  // namespace

JoinedBuffers::JoinedBuffers(std::span<const SearchBuffer> buffers) : input_count_(buffers.size()) {
  for (const SearchBuffer& buffer : buffers) nodes_.push_back({.buffer = buffer});
  for (int round = 0; round < kMaxRounds && JoinMatches();) ++round;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].is_joined) continue;
    joined_.push_back(nodes_[i].buffer);
    node_of_joined_.push_back(static_cast<int32_t>(i));
  }
}

// One round. Joining may create new matches, so rounds repeat until one joins nothing. Returns
// false if there are no matches, or too many.
bool JoinedBuffers::JoinMatches() {
  const std::vector<Stack> stacks = FindStacks();
  looked_at_ += std::ssize(stacks);
  bool has_joined = false;
  for (const auto& [before, after] : FindMatches(stacks)) {
    if (!IsFree(*before) || !IsFree(*after)) continue;
    const size_t count = before->nodes.size() + after->nodes.size();
    // Pairs of single buffers come first. Once some are joined, a new round looks for more such
    // pairs, which are better evidence than matches of stacks.
    if (has_joined && count > 2) break;
    Join(JoinStack(*before), JoinStack(*after), false);
    has_joined = true;
  }
  return has_joined;
}

// Returns all stacks of one to three buffers with the same life.
std::vector<JoinedBuffers::Stack> JoinedBuffers::FindStacks() const {
  std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> groups;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    // The offset of a part follows from that of the whole, so its own alignment might not be met.
    if (node.is_joined || node.buffer.alignment > 1) continue;
    std::vector<int32_t>& group = groups[{node.buffer.first, node.buffer.last}];
    if (group.size() < kMaxGroup) group.push_back(static_cast<int32_t>(i));
  }
  std::vector<Stack> stacks;
  const auto add = [&](const std::vector<int32_t>& nodes) {
    const SearchBuffer& any = nodes_[static_cast<size_t>(nodes[0])].buffer;
    stacks.push_back({.first = any.first, .last = any.last, .nodes = nodes});
    for (int32_t n : nodes) stacks.back().size += nodes_[static_cast<size_t>(n)].buffer.size;
  };
  for (const auto& [life, group] : groups) {
    for (size_t i = 0; i < group.size(); ++i) {
      add({group[i]});
      for (size_t j = 0; j < i; ++j) {
        add({group[i], group[j]});
        for (size_t k = 0; k < j; ++k) add({group[i], group[j], group[k]});
      }
    }
  }
  return stacks;
}

// Returns pairs of stacks of the same size, one of which begins where the other ends, simple ones
// first. Returns none if there are too many.
std::vector<JoinedBuffers::Match> JoinedBuffers::FindMatches(const std::vector<Stack>& stacks) {
  std::vector<const Stack*> by_start;
  for (const Stack& stack : stacks) by_start.push_back(&stack);
  // 64 bits: a life may end at the last instant that 32 bits hold, and nothing begins after it.
  const auto key = [](const Stack* stack) { return std::pair(int64_t{stack->first}, stack->size); };
  std::ranges::stable_sort(by_start, {}, key);
  std::vector<Match> matches;
  for (const Stack& before : stacks) {
    const auto found = std::ranges::equal_range(
        by_start, std::pair(int64_t{before.last} + 1, before.size), {}, key);
    looked_at_ += std::ssize(found);
    if (looked_at_ > kMaxLookedAt) return {};
    for (const Stack* after : found) {
      if (before.nodes.size() + after->nodes.size() > kMaxBuffersOfMatch) continue;
      matches.emplace_back(&before, after);
    }
  }
  std::ranges::stable_sort(matches, {}, [](const Match& match) {
    return match.first->nodes.size() + match.second->nodes.size();
  });
  return matches;
}

bool JoinedBuffers::IsFree(const Stack& stack) const {
  return std::ranges::none_of(stack.nodes,
                              [&](int32_t n) { return nodes_[static_cast<size_t>(n)].is_joined; });
}

int32_t JoinedBuffers::Join(int32_t a, int32_t b, bool is_stack) {
  Node& first = nodes_[static_cast<size_t>(a)];
  Node& second = nodes_[static_cast<size_t>(b)];
  first.is_joined = second.is_joined = true;
  Node node{.buffer = first.buffer, .is_stack = is_stack, .parts = {a, b}};
  if (is_stack) {
    node.buffer.size += second.buffer.size;
  } else {
    node.buffer.last = second.buffer.last;
  }
  nodes_.push_back(node);
  return static_cast<int32_t>(nodes_.size()) - 1;
}

int32_t JoinedBuffers::JoinStack(const Stack& stack) {
  int32_t result = stack.nodes[0];
  for (size_t i = 1; i < stack.nodes.size(); ++i) result = Join(result, stack.nodes[i], true);
  return result;
}

std::vector<int64_t> JoinedBuffers::OffsetsOfParts(std::span<const int64_t> offsets) const {
  std::vector<int64_t> of_nodes(nodes_.size(), 0);
  for (size_t i = 0; i < offsets.size(); ++i) {
    of_nodes[static_cast<size_t>(node_of_joined_[i])] = offsets[i];
  }
  // From the last node on: parts have lower numbers than the nodes that contain them.
  for (size_t i = nodes_.size(); i-- > input_count_;) {
    const Node& node = nodes_[i];
    const auto a = static_cast<size_t>(node.parts[0]);
    const auto b = static_cast<size_t>(node.parts[1]);
    of_nodes[a] = of_nodes[b] = of_nodes[i];
    if (node.is_stack) of_nodes[b] += nodes_[a].buffer.size;
  }
  of_nodes.resize(input_count_);
  return of_nodes;
}

}  // namespace skiff
