#include "memory/arena_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "memory/joined_buffers.h"
#include "tests/memory/arena_sets.h"

namespace skiff {
namespace {

std::vector<SearchBuffer> SearchBuffersOf(const std::vector<ArenaBuffer>& buffers) {
  std::vector<SearchBuffer> result;
  for (const ArenaBuffer& b : buffers) {
    result.push_back({b.bytes, b.alignment, b.first_use, b.last_use});
  }
  return result;
}

SearchResult Search(const std::vector<ArenaBuffer>& buffers, int64_t capacity,
                    int64_t max_nodes = 1'000'000) {
  const SearchResult result =
      SearchArena(SearchBuffersOf(buffers), capacity, {.max_nodes = max_nodes});
  EXPECT_LE(result.nodes, max_nodes);
  if (result.outcome == SearchOutcome::kFound) {
    EXPECT_EQ(PlacementFault(buffers, result.offsets, capacity), "");
  }
  return result;
}

ArenaBuffer Bytes(int64_t bytes, int32_t first, int32_t last, int64_t alignment = 1) {
  return {.bytes = bytes, .alignment = alignment, .first_use = first, .last_use = last};
}

// Returns whether the buffers from `next` on fit beside the placed ones before them. Tries every
// offset.
bool Fit(const std::vector<ArenaBuffer>& buffers, int64_t capacity, std::vector<int64_t>* offsets) {
  const size_t next = offsets->size();
  if (next == buffers.size()) return true;
  const ArenaBuffer& b = buffers[next];
  for (int64_t offset = 0; offset + b.bytes <= capacity; ++offset) {
    bool is_free = true;
    for (size_t i = 0; i < next; ++i) {
      const ArenaBuffer& other = buffers[i];
      is_free =
          is_free && !(other.first_use <= b.last_use && b.first_use <= other.last_use &&
                       (*offsets)[i] < offset + b.bytes && offset < (*offsets)[i] + other.bytes);
    }
    if (!is_free) continue;
    offsets->push_back(offset);
    if (Fit(buffers, capacity, offsets)) return true;
    offsets->pop_back();
  }
  return false;
}

int64_t LeastCapacity(std::vector<ArenaBuffer> buffers) {
  std::ranges::sort(buffers, {}, &ArenaBuffer::first_use);
  for (int64_t capacity = PlanArena(buffers).max_live_bytes;; ++capacity) {
    std::vector<int64_t> offsets;
    if (Fit(buffers, capacity, &offsets)) return capacity;
  }
}

// Returns the most units live at one instant.
int64_t LeastLoad(const std::vector<SearchBuffer>& buffers) {
  std::vector<std::pair<int32_t, int64_t>> changes;
  for (const SearchBuffer& buffer : buffers) {
    changes.emplace_back(buffer.first, buffer.size);
    changes.emplace_back(buffer.last + 1, -buffer.size);
  }
  std::ranges::sort(changes);
  int64_t load = 0;
  int64_t most = 0;
  for (const auto& [instant, change] : changes) most = std::max(most, load += change);
  return most;
}

TEST(SearchArena, FindsTheLeastCapacityOfSmallSets) {
  std::mt19937 random(1);
  const auto below = [&random](uint32_t limit) { return static_cast<int32_t>(random() % limit); };
  for (int round = 0; round < 150; ++round) {
    std::vector<ArenaBuffer> buffers;
    for (int i = 0; i < 7; ++i) {
      const int32_t first = below(8);
      buffers.push_back(Bytes(1 + below(6), first, first + below(5)));
    }
    const int64_t least = LeastCapacity(buffers);
    SCOPED_TRACE(round);
    EXPECT_EQ(Search(buffers, least).outcome, SearchOutcome::kFound);
    EXPECT_EQ(Search(buffers, least - 1).outcome, SearchOutcome::kImpossible);
  }
}

// Some sets need more than the bound; only a search can prove it.
TEST(SearchArena, ProvesThatTheBoundIsOutOfReach) {
  int above_bound = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const std::vector<ArenaBuffer> buffers = FullLoad(6, 12, seed);
    const int64_t least = LeastCapacity(buffers);
    SCOPED_TRACE(seed);
    EXPECT_EQ(Search(buffers, least).outcome, SearchOutcome::kFound);
    EXPECT_EQ(Search(buffers, least - 1).outcome, SearchOutcome::kImpossible);
    if (least > 12) ++above_bound;
  }
  EXPECT_GT(above_bound, 0);
}

TEST(SearchArena, PutsARectangleTogetherAgain) {
  for (const bool with_pinwheels : {false, true}) {
    for (const int32_t instants : {60, 1000, 100000}) {
      const RectangleCuts cuts{
          .pieces = 100, .instants = instants, .with_pinwheels = with_pinwheels, .seed = 3};
      SCOPED_TRACE(instants);
      SCOPED_TRACE(with_pinwheels);
      EXPECT_EQ(Search(CutRectangle(cuts), cuts.bytes).outcome, SearchOutcome::kFound);
    }
  }
}

TEST(SearchArena, PutsTwoHundredPiecesTogether) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const RectangleCuts cuts{.pieces = 200, .instants = 500, .seed = seed};
    SCOPED_TRACE(seed);
    EXPECT_EQ(Search(CutRectangle(cuts), cuts.bytes).outcome, SearchOutcome::kFound);
  }
}

TEST(SearchArena, RespectsAlignments) {
  const std::vector<ArenaBuffer> buffers = {Bytes(3, 0, 1), Bytes(8, 1, 2, 8), Bytes(4, 0, 3, 4)};
  EXPECT_EQ(Search(buffers, 16).outcome, SearchOutcome::kFound);
  EXPECT_NE(Search(buffers, 14).outcome, SearchOutcome::kFound);
}

TEST(SearchArena, StopsAfterItsNodes) {
  const RectangleCuts cuts{.pieces = 200, .instants = 50, .with_pinwheels = true, .seed = 1};
  const SearchResult result = Search(CutRectangle(cuts), cuts.bytes, 50);
  EXPECT_EQ(result.outcome, SearchOutcome::kStopped);
  EXPECT_LE(result.nodes, 50);
}

// The search may exceed the limit by the steps of one state: a few for each buffer and each
// instant.
TEST(SearchArena, StopsAfterItsStepsHoweverManyBuffersThereAre) {
  for (const int32_t count : {500, 4000, 20000}) {
    std::mt19937 random(1);
    std::vector<SearchBuffer> equal(static_cast<size_t>(count));
    std::vector<SearchBuffer> small = equal;
    for (size_t i = 0; i < equal.size(); ++i) {
      const auto first = static_cast<int32_t>(random() % equal.size());
      const auto last = first + static_cast<int32_t>(random() % 2000);
      equal[i] = {.size = 7, .first = first, .last = last};
      // Thousands of choices at two boundaries.
      small[i] = {.size = 1 + static_cast<int64_t>(i % 2 * 6),
                  .first = static_cast<int32_t>(i % 2),
                  .last = static_cast<int32_t>(1 + i % 3)};
    }
    for (const std::vector<SearchBuffer>& buffers : {equal, small}) {
      SCOPED_TRACE(count);
      const int64_t capacity = LeastLoad(buffers);
      for (const int64_t max_steps : {int64_t{1}, int64_t{3'000'000}}) {
        const SearchResult result =
            SearchArena(buffers, capacity, {.max_nodes = INT64_MAX, .max_steps = max_steps});
        EXPECT_LE(result.steps, max_steps + 1000 * int64_t{count});
        EXPECT_LE(result.nodes, result.steps);
      }
    }
  }
}

TEST(SearchArena, RepeatsWhereItsStepsRunOut) {
  const RectangleCuts cuts{.pieces = 200, .instants = 50, .with_pinwheels = true, .seed = 1};
  const std::vector<SearchBuffer> buffers = SearchBuffersOf(CutRectangle(cuts));
  const SearchLimits limits{.max_nodes = INT64_MAX, .max_steps = 2'000'000};
  const SearchResult first = SearchArena(buffers, cuts.bytes, limits);
  EXPECT_EQ(first.outcome, SearchOutcome::kStopped);
  const SearchResult second = SearchArena(buffers, cuts.bytes, limits);
  EXPECT_EQ(first.steps, second.steps);
  EXPECT_EQ(first.nodes, second.nodes);
}

TEST(SearchArena, StopsWhenTold) {
  const RectangleCuts cuts{.pieces = 200};
  const SearchResult result = SearchArena(SearchBuffersOf(CutRectangle(cuts)), cuts.bytes,
                                          {.max_nodes = 1'000'000, .stop = [] { return true; }});
  EXPECT_EQ(result.outcome, SearchOutcome::kStopped);
}

TEST(SearchArena, RepeatsForOneInput) {
  const RectangleCuts cuts{.pieces = 80, .instants = 60, .seed = 2};
  const std::vector<ArenaBuffer> buffers = CutRectangle(cuts);
  const SearchResult first = Search(buffers, cuts.bytes);
  const SearchResult second = Search(buffers, cuts.bytes);
  EXPECT_EQ(first.offsets, second.offsets);
  EXPECT_EQ(first.nodes, second.nodes);
}

// Nothing begins after the last instant of 32 bits. (UndefinedBehaviorSanitizer reports the
// overflow if the code adds 1 to it.)
TEST(JoinedBuffers, ThatLiveToTheLastInstantHaveNoNext) {
  const std::vector<SearchBuffer> buffers = {{.size = 5, .first = 0, .last = 3},
                                             {.size = 5, .first = 4, .last = INT32_MAX},
                                             {.size = 5, .first = 0, .last = INT32_MAX}};
  const JoinedBuffers joined(buffers);
  EXPECT_EQ(joined.buffers().size(), 2u);
  EXPECT_EQ(SearchArena(buffers, 10, {.max_nodes = 1000}).outcome, SearchOutcome::kFound);
}

TEST(SearchArena, FindsNothingToDoForNothing) {
  EXPECT_EQ(Search({}, 0).outcome, SearchOutcome::kFound);
  EXPECT_EQ(Search({Bytes(1, 0, 0)}, 0).outcome, SearchOutcome::kImpossible);
}

TEST(JoinedBuffers, JoinsWhatFollowsOnABufferOfItsSize) {
  // The second and the third, stacked, match the first, which dies just before; the last one
  // matches nothing.
  const std::vector<SearchBuffer> buffers = {{.size = 10, .first = 0, .last = 4},
                                             {.size = 7, .first = 5, .last = 9},
                                             {.size = 3, .first = 5, .last = 9},
                                             {.size = 4, .first = 5, .last = 8}};
  const JoinedBuffers joined(buffers);
  ASSERT_EQ(joined.buffers().size(), 2u);
  EXPECT_EQ(joined.buffers()[0].size, 4);
  EXPECT_EQ(joined.buffers()[1].size, 10);
  EXPECT_EQ(joined.buffers()[1].first, 0);
  EXPECT_EQ(joined.buffers()[1].last, 9);
  const std::vector<int64_t> of_joined = {20, 100};
  const std::vector<int64_t> offsets = joined.OffsetsOfParts(of_joined);
  ASSERT_EQ(offsets.size(), 4u);
  EXPECT_EQ(offsets[0], 100);
  EXPECT_EQ(std::min(offsets[1], offsets[2]), 100);
  EXPECT_EQ(offsets[1] < offsets[2] ? offsets[2] - 7 : offsets[1] - 3, 100);
  EXPECT_EQ(offsets[3], 20);
}

// Hundreds of buffers on either side, each of which matches each on the other.
TEST(JoinedBuffers, GivesUpAmongHundredsOfEqualBuffers) {
  std::vector<SearchBuffer> buffers;
  for (int32_t i = 0; i < 1000; ++i) {
    const int32_t life = i / 20;
    const bool is_late = life % 2 == 1;
    buffers.push_back(
        {.size = 1, .first = is_late ? 100 : life, .last = is_late ? 100 + life : 99});
  }
  const JoinedBuffers joined(buffers);
  EXPECT_LE(joined.steps(), 100'000'000);
  EXPECT_EQ(joined.buffers().size(), buffers.size());
}

TEST(JoinedBuffers, LeavesAlignedBuffersAlone) {
  const std::vector<SearchBuffer> buffers = {{.size = 8, .alignment = 4, .first = 0, .last = 1},
                                             {.size = 8, .alignment = 4, .first = 2, .last = 3}};
  EXPECT_EQ(JoinedBuffers(buffers).buffers().size(), 2u);
}

}  // namespace
}  // namespace skiff
