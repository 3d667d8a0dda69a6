#include "framework/executor/rows/run_shapes.h"

#include <gtest/gtest.h>

#include <memory>

#include "framework/executor/device/device_link.h"
#include "framework/executor/lowering/lowering.h"
#include "framework/executor/storage/storage.h"
#include "framework/ir/text.h"
#include "tests/harness/ragged_feeds.h"

namespace skiff {
namespace {

// The shape of what sequence_expand makes depends on the LoD of Y, which no tensor of it has.
TEST(RunShapes, GiveThePlanOfTheMomentTheLoDsOnWhichShapesDepend) {
  const auto program = ParseProgramText(R"(program { block 0 {
    var x float32 [-1, 2]
    var y float32 [-1, 1] lod=1
    var out float32 [-1, 2]
    {Out: [out]} = sequence_expand(X: [x], Y: [y])
  } })");
  const Tensor x({2, 2}, DType::kFloat32);
  const Tensor y = harness::RaggedRows({{2, 3}}, 1);
  const auto lod = std::make_shared<const LoDGroup>(LoDGroup{.offsets = y.lod()});
  const FeedMetas metas = {{"x", {.shape = x.shape()}},
                           {"y", {.shape = y.shape(), .lod_level = 1, .lod = lod}}};
  const CountClasses counts(metas, {true, true});
  Scope scope;
  Plan plan = LowerProgram({.registry = DefaultOpRegistry(),
                            .scope = scope,
                            .place = Place::Cpu(),
                            .rows_vary = true,
                            .is_for_capacity = true},
                           *program, counts.Widened(metas, counts.Capacity()), {"out"});
  PlanStorage(&plan);
  BoundValues values(plan, &scope, std::make_shared<SharedArena>(DeviceLink::Host()));
  RunShapes shapes(DefaultOpRegistry(), plan, &counts);
  shapes.Bind(&values);
  ASSERT_TRUE(shapes.Serves({{"x", x}, {"y", y}}));
  shapes.Set(&values);
  const ValueId out = plan.fetches[0];
  const TensorMeta& moment = shapes.CurrentPlan()[out].meta;
  EXPECT_EQ(plan[out].meta.shape, (Shape{8, 2}));
  EXPECT_EQ(moment.shape, (Shape{5, 2}));
  ASSERT_NE(moment.shape_lod, nullptr);
  EXPECT_EQ(moment.shape_lod->offsets, y.lod());
}

}  // namespace
}  // namespace skiff
