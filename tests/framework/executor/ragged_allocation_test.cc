// Steady state with LoDs that ops derive and ragged fetches: after the first batch of a capacity,
// others with LoDs that the plan has never seen allocate nothing.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "memory/places.h"
#include "tests/harness/allocation_count.h"
#include "tests/harness/ragged_feeds.h"

namespace skiff {
namespace {

using harness::RaggedRows;
using harness::RandomLengths;

constexpr int64_t kMostRows = 24;

// 1 to 8 sequences and 18 to 24 rows: one capacity. `nested` has a sequence less than rows in its
// lower level.
std::vector<FeedList> Batches(int count) {
  std::mt19937_64 random(5);
  std::vector<FeedList> batches;
  std::set<LoD> seen;
  while (static_cast<int>(batches.size()) < count) {
    const int64_t sequences = 1 + static_cast<int64_t>(random() % 8);
    const int64_t rows = 18 + static_cast<int64_t>(random() % 7);
    const Tensor x = RaggedRows({RandomLengths(rows, sequences, &random)}, 2);
    if (!seen.insert(x.lod()).second) continue;
    const Tensor y = RaggedRows({RandomLengths(rows, sequences, &random)}, 2);
    const Tensor nested = RaggedRows(
        {RandomLengths(rows - 1, sequences, &random), RandomLengths(rows, rows - 1, &random)}, 2);
    batches.push_back({{"x", x}, {"y", y}, {"nested", nested}});
  }
  return batches;
}

TEST(RaggedAllocation, DerivedLoDsAndRaggedFetchesTakeNoMemory) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable y = layers::Data("y", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable nested = layers::Data("nested", {-1, 2}, DType::kFloat32, {.lod_level = 2});
  const Variable zero = layers::FillConstant({1}, DType::kFloat32, 0);
  const FetchList fetches = {layers::SequenceExpand(x, y).name(),
                             layers::SequenceExpand(x, nested, /*ref_level=*/0).name(),
                             layers::SequenceConcat({x, y}).name(),
                             layers::SequencePad(x, zero, kMostRows).padded.name(),
                             layers::SequencePool(nested, "SUM").name(),
                             layers::SequenceReshape(x, 1).name(),
                             layers::LoDReset(layers::Scale(x, {.scale = 2.0f}), y).name(),
                             x.name()};
  Executor executor;
  CompiledProgram program = executor.Compile(main);
  // The largest number of repeats: the plan has room for all others.
  std::mt19937_64 random(1);
  const FeedList longest = {
      {"x", RaggedRows({{kMostRows}}, 2)},
      {"y", RaggedRows({{kMostRows}}, 2)},
      {"nested",
       RaggedRows({{kMostRows - 1}, RandomLengths(kMostRows, kMostRows - 1, &random)}, 2)}};
  BoundProgram bound = program.Bind(longest, fetches);
  bound.Step();
  const std::vector<FeedList> batches = Batches(1000);
  const int64_t before = harness::CountAllocations().own;
  const int64_t buffers_before = AllocatorOf(Place::Cpu()).statistics().allocations;
  int64_t served = 0, rows = 0;
  for (const FeedList& batch : batches) {
    served += bound.Feed(batch) ? 1 : 0;
    bound.Step();
    rows += bound.fetch(0).shape()[0];
  }
  EXPECT_EQ(harness::CountAllocations().own - before, 0);
  EXPECT_EQ(AllocatorOf(Place::Cpu()).statistics().allocations, buffers_before);
  EXPECT_EQ(served, 1000);
  EXPECT_EQ(program.preparation().plans, 1);
  EXPECT_GT(rows, 18000);
  // The last batch's, not those of the first one.
  EXPECT_EQ(bound.fetch(7).lod(), batches.back()[0].second.lod());
}

// A caller's copy of a fetch keeps the LoD of its run.
TEST(RaggedAllocation, CopiesOfAFetchKeepTheirLoDAndValues) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  const Variable y = layers::Scale(x, {.scale = 2.0f});
  Executor executor;
  CompiledProgram program = executor.Compile(main);
  BoundProgram bound = program.Bind({{"x", RaggedRows({{2, 3}}, 2)}}, {y.name()});
  bound.Step();
  const Tensor copy = bound.fetch(0);
  const std::vector<float> values = copy.ToVector<float>();
  ASSERT_TRUE(bound.Feed({{"x", RaggedRows({{1, 1, 4}}, 2, /*first=*/7, /*step=*/3)}}));
  bound.Step();
  EXPECT_EQ(copy.ToVector<float>(), values);
  EXPECT_EQ(copy.lod(), (LoD{{0, 2, 5}}));
  EXPECT_EQ(bound.fetch(0).lod(), (LoD{{0, 1, 2, 6}}));
  EXPECT_EQ(bound.fetch(0).shape(), (Shape{6, 2}));
}

}  // namespace
}  // namespace skiff
