#include "memory/arena_search.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "memory/joined_buffers.h"
#include "memory/skyline_search.h"

namespace skiff {
namespace {

using Verdict = SkylineSearch::Verdict;

// With more buffers, joining would take longer than a dive.
constexpr size_t kMaxBuffersToJoin = 1000;
// The nodes of the first dive, plus some per buffer.
constexpr int64_t kFirstDiveNodes = 1000;
constexpr int64_t kFirstDiveNodesPerBuffer = 4;
// Each later dive gets more nodes, by this fraction. If all capacity is in use at some instant,
// most choices are forced and failures are worth remembering, so dives grow fast. Otherwise a dive
// depends on luck, so many short ones are better.
constexpr int64_t kGrowthIfFull = 8;
constexpr int64_t kGrowth = 128;

// A way to search: for the buffers or for joined ones, with or without matched boundaries.
struct Way {
  std::unique_ptr<SkylineSearch> search = {};
  bool is_exact = false;   // its kImpossible is a proof
  bool is_joined = false;  // its offsets are those of joined buffers
};

// Runs up to three searches in turn, one dive each: for joined buffers with matched boundaries, for
// the buffers with matched boundaries, and for the buffers alone. The first two rest on guesses,
// but find tight placements much sooner where the guesses are right. Only the last one can prove
// that there is no placement.
class Turns {
 public:
  Turns(std::span<const SearchBuffer> buffers, int64_t capacity, const SearchLimits& limits)
      : limits_(limits) {
    SkylineSearch::Options options{
        .capacity = capacity, .match_boundaries = true, .seed = limits.seed, .stop = limits.stop};
    const auto add = [&](std::span<const SearchBuffer> set, bool is_joined) {
      auto search = std::make_unique<SkylineSearch>(set, options);
      // Without matched boundaries it would repeat the search without matching.
      if (options.match_boundaries && !is_joined && !search->has_matched_boundaries()) return;
      steps_ += search->steps();
      const bool is_exact = !is_joined && !options.match_boundaries;
      ways_.push_back({std::move(search), is_exact, is_joined});
    };
    if (buffers.size() <= kMaxBuffersToJoin) {
      joined_ = std::make_unique<JoinedBuffers>(buffers);
      steps_ += joined_->steps();
      if (joined_->buffers().size() < buffers.size()) add(joined_->buffers(), true);
    }
    add(buffers, false);
    options.match_boundaries = false;
    add(buffers, false);
  }

  SearchResult Run(int64_t dive_nodes) {
    SearchResult result{.steps = steps_};
    // The last way is the exact one.
    const int64_t growth = ways_.back().search->IsFull() ? kGrowthIfFull : kGrowth;
    for (size_t turn = 0; !ways_.empty(); ++turn) {
      Way& way = ways_[turn % ways_.size()];
      if (result.nodes >= limits_.max_nodes || result.steps >= limits_.max_steps ||
          (limits_.stop && limits_.stop())) {
        return result;
      }
      const int64_t nodes_before = way.search->nodes();
      const int64_t steps_before = way.search->steps();
      const Verdict verdict = way.search->Dive(
          std::min(dive_nodes, limits_.max_nodes - result.nodes), limits_.max_steps - result.steps);
      result.nodes += way.search->nodes() - nodes_before;
      result.steps += way.search->steps() - steps_before;
      if (verdict == Verdict::kFound) {
        result.outcome = SearchOutcome::kFound;
        result.offsets = way.search->Offsets();
        if (way.is_joined) result.offsets = joined_->OffsetsOfParts(result.offsets);
        return result;
      }
      if (verdict == Verdict::kImpossible && way.is_exact) {
        result.outcome = SearchOutcome::kImpossible;
        return result;
      }
      if (verdict == Verdict::kImpossible) {
        // The guess of this way is refuted, which says nothing about the buffers themselves.
        ways_.erase(ways_.begin() + static_cast<std::ptrdiff_t>(turn % ways_.size()));
      }
      dive_nodes += dive_nodes / growth;
    }
    return result;
  }

 private:
  const SearchLimits& limits_;
  int64_t steps_ = 0;  // of the construction
  std::unique_ptr<JoinedBuffers> joined_;
  std::vector<Way> ways_;
};

}  // namespace

SearchResult SearchArena(std::span<const SearchBuffer> buffers, int64_t capacity,
                         const SearchLimits& limits) {
  if (buffers.empty()) return {.outcome = SearchOutcome::kFound};
  const int64_t dive_nodes =
      kFirstDiveNodes + kFirstDiveNodesPerBuffer * static_cast<int64_t>(buffers.size());
  return Turns(buffers, capacity, limits).Run(dive_nodes);
}

}  // namespace skiff
