// What has gone wrong where a framework shared memory between variables, one test a hazard. Numbers
// are those of PaddlePaddle's issues and pull requests, whose users met it.
//
// There, memory was shared by renaming variables in the program; here it is an allocation decision
// about values. Not here, since ops with sub-blocks don't run yet: the block of a gradient was
// matched with the parent of its forward block (bf92706c5), and branches of a condition shared what
// lives outside of them (#15998). What an op reads and writes inside its sub-blocks is tested in
// tests/framework/analysis/definitions_test.cc. Neither is ragged data (part of #19188), which the
// executor doesn't plan yet.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "framework/analysis/liveness.h"
#include "framework/base/error.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/op_role.h"
#include "tests/framework/executor/reuse_fixture.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::SizeIs;

// Who takes a dead buffer is no choice with these.
constexpr ReusePolicy kPools[] = {ReusePolicy::kEqual, ReusePolicy::kBestFit, ReusePolicy::kGrow};
constexpr ReusePolicy kSharing[] = {ReusePolicy::kEqual, ReusePolicy::kBestFit, ReusePolicy::kGrow,
                                    ReusePolicy::kArena};

class ReuseHazards : public ReuseFixture {
 protected:
  static ValueId RootOf(const Plan& plan, const std::string& variable) {
    return plan.StorageOf(ValueOf(plan, variable));
  }
};

// ---- fetches

// #12387: of a, b and the cost fetched together, a came back as the cost. #11320, #11462, #13669: a
// variable that wasn't marked as persistable came back as anything.
TEST_F(ReuseHazards, WhatIsFetchedTogetherKeepsItsValuesToTheEnd) {
  const Variable x = layers::Data("x", {-1, 16});
  const Variable a = layers::Fc(layers::Fc(x, 16, {.act = "tanh"}), 16);
  const Variable b = layers::Fc(a, 16, {.act = "tanh"});
  const Variable cost = layers::Mean(layers::Square(b));
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(cost);
  const FeedList feeds = {{"x", Floats({4, 16})}};
  AddRun(feeds, {a, b, cost});
  AddRun(feeds, {cost});
  AddRun(feeds, {a});
  AddRun(feeds, {cost, b, b});
  AddRun(feeds, {});
  AddRun(feeds, {a, b, cost});
  ExpectSameResults();
  EXPECT_FALSE(a.var().persistable || b.var().persistable || cost.var().persistable);
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    EXPECT_TRUE(IsOverwritten(PlanOf(1, policy), ValueOf(PlanOf(1, policy), a)));
    for (const Variable& fetched : {a, b, cost}) {
      const Plan& plan = PlanOf(0, policy);
      EXPECT_FALSE(IsOverwritten(plan, ValueOf(plan, fetched))) << fetched.name();
    }
  }
}

// The same for gradients, saved statistics and whatever else ops write.
TEST_F(ReuseHazards, EveryVariableOfATrainingStepCanBeFetched) {
  const Variable x = layers::Data("x", {-1, 3, 6, 6});
  Variable y = layers::Conv2d(x, {.filters = 4, .kernel = 3, .padding = 1});
  y = layers::Pool2d(layers::BatchNorm(y, {.act = "relu"}), {.kernel = 2, .stride = 2});
  y = layers::Fc(layers::Dropout(y, 0.3f), 5, {.num_flatten_dims = 1});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(y, label));
  optimizer::Momentum({.learning_rate = 0.1}).Minimize(loss);
  FetchList all;
  for (const auto& op : main_.root()->ops()) {
    for (const std::string& name : op->OutputNames()) all.push_back(name);
  }
  const FeedList feeds = {{"x", Floats({4, 3, 6, 6})}, {"label", Ids({4, 1}, 5)}};
  AddRun(feeds, all);
  for (size_t i = 0; i < all.size(); i += 5) AddRun(feeds, {all[i]});
  ExpectSameResults();
}

// ---- what ops write in place

// #7599: a renamed input of an op was recorded as a renamed output, so after two in-place ops in a
// row, liveness was that of other variables.
TEST_F(ReuseHazards, AChainOfOpsInPlaceLivesUntilItsLastReader) {
  UseOps(R"(
    {Out: [a]} = matmul(X: [x], Y: [w])
    {Out: [b]} = tanh(X: [a])
    {Out: [c]} = scale(X: [b]) {scale = 3.0}
    {Out: [d]} = matmul(X: [c], Y: [w])
    {Out: [e]} = matmul(X: [d], Y: [w])
    {Out: [f]} = matmul(X: [e], Y: [d])
    {Out: [g]} = matmul(X: [f], Y: [c])
    {Out: [h]} = matmul(X: [g], Y: [w])
  )");
  AddRun({{"x", Floats({8, 8})}}, {"h"});
  ExpectSameResults();
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    const Plan& plan = PlanOf(0, policy);
    EXPECT_EQ(RootOf(plan, "c"), RootOf(plan, "a"));
    EXPECT_FALSE(ShareBytes(plan, ValueOf(plan, "c"), ValueOf(plan, "d")));
    EXPECT_FALSE(ShareBytes(plan, ValueOf(plan, "c"), ValueOf(plan, "f")));
    EXPECT_TRUE(ShareBytes(plan, ValueOf(plan, "c"), ValueOf(plan, "h")));
  }
}

// #8233: a variable that an op reads and writes was given the memory of another one.
TEST_F(ReuseHazards, AVariableThatAnOpReadsAndWritesIsReadBeforeItIsWritten) {
  UseOps(R"(
    {Out: [t]} = tanh(X: [x])
    {Out: [t]} = elementwise_add(X: [t], Y: [x])
    {Out: [t]} = elementwise_sub(X: [x], Y: [t])
    {Out: [t]} = elementwise_mul(X: [t], Y: [t])
    {Out: [t]} = matmul(X: [t], Y: [t])
    {Out: [a]} = matmul(X: [t], Y: [s])
    {Out: [s]} = elementwise_add(X: [s], Y: [a])
    {Out: [s]} = elementwise_sub(X: [a], Y: [s])
    {Out: [s]} = matmul(X: [s], Y: [w])
    {Out: [n]} = fill_constant() {shape = longs [1], dtype = 3, value = 4.0}
    {Out: [n]} = increment(X: [n]) {step = 1.0}
    {Out: [b]} = matmul(X: [s], Y: [t])
  )",
         "var t float32 [8, 8] var n int64 [1]");
  const FeedList feeds = {{"x", Floats({8, 8})}};
  AddRun(feeds, {"b"});
  AddRun(feeds, {"t", "s", "n", "b"});
  AddRun(feeds, {"n", "a"});
  ExpectSameResults();
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    const Plan& plan = PlanOf(0, policy);
    // Of the five definitions the product alone isn't in place, nor is what squares them.
    const std::vector<ValueId> t = ValuesOf(plan, "t");
    ASSERT_THAT(t, SizeIs(5));
    EXPECT_EQ(plan.StorageOf(t[2]), t[0]);
    EXPECT_FALSE(ShareBytes(plan, t[2], t[3]));
    EXPECT_FALSE(ShareBytes(plan, t[3], t[4]));
  }
}

// ---- which version of a variable

// #16736: only the latest version may be given away. The second one is shown by a view and read
// through it when the third has been written.
TEST_F(ReuseHazards, AnEarlierVersionStaysForItsLateReader) {
  UseOps(R"(
    {Out: [v]} = matmul(X: [x], Y: [w])
    {Out: [a]} = matmul(X: [v], Y: [w])
    {Out: [v]} = scale(X: [a]) {scale = 3.0}
    {Out: [late], XShape: [of_v]} = reshape2(X: [v]) {shape = ints [4, 16]}
    {Out: [v]} = scale(X: [v]) {scale = 5.0}
    {Out: [b]} = matmul(X: [v], Y: [w])
    {Out: [c]} = matmul(X: [b], Y: [w])
    {Out: [flat], XShape: [of_late]} = reshape2(X: [late]) {shape = ints [8, 8]}
    {Out: [d]} = matmul(X: [flat], Y: [c])
  )",
         "var v float32 [8, 8] var late float32 [4, 16] var flat float32 [8, 8] "
         "var of_v float32 [0, 8, 8] var of_late float32 [0, 4, 16]");
  const FeedList feeds = {{"x", Floats({8, 8})}};
  AddRun(feeds, {"d"});
  AddRun(feeds, {"d", "v"});
  AddRun(feeds, {"v", "late"});
  ExpectSameResults();
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    const Plan& plan = PlanOf(0, policy);
    const std::vector<ValueId> v = ValuesOf(plan, "v");
    ASSERT_THAT(v, SizeIs(3));
    EXPECT_EQ(plan.StorageOf(v[1]), RootOf(plan, "late"));
    EXPECT_FALSE(ShareBytes(plan, v[1], v[2]));
    EXPECT_FALSE(ShareBytes(plan, v[1], ValueOf(plan, "c")));
  }
}

// #7599: a dead buffer that was offered to the variable that it had belonged to was lost.
TEST_F(ReuseHazards, AVariableWrittenAgainTakesDeadMemoryLikeAnyOther) {
  const auto flip = [](const std::string& out, const std::string& in) {
    return "{Out: [" + out + "]} = flip(X: [" + in + "]) {axis = ints [0]}\n";
  };
  std::string other_names, one_name, previous = "x";
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    other_names += flip(name, previous);
    one_name += flip("a", previous == "x" ? "x" : "a");
    previous = name;
  }
  // By turns: when b is written again, what it had is free.
  one_name += flip("b", "a") + flip("a", "b") + flip("b", "a");
  other_names += flip("i", "h") + flip("j", "i") + flip("y", "j");
  UseOps(one_name);
  AddRun({{"x", Floats({8, 8})}}, {"b"});
  ExpectSameResults();
  constexpr int64_t kBytes = 8 * 8 * 4;
  for (const ReusePolicy policy : kSharing)
    EXPECT_EQ(PlanOf(0, policy).planned_bytes, 2 * kBytes) << ReusePolicyName(policy);
  UseOps(other_names);
  AddRun({{"x", Floats({8, 8})}}, {"y"});
  for (const ReusePolicy policy : kSharing)
    EXPECT_EQ(PlanOf(1, policy).planned_bytes, 2 * kBytes) << ReusePolicyName(policy);
}

// ---- when a value lives

// #10865: the loop of liveness left out op 0, so that nothing of it was ever free.
TEST_F(ReuseHazards, WhatTheFirstOpWritesIsFreedLikeAnyOther) {
  UseOps(R"(
    {Out: [a], Indices: [places]} = argsort(X: [x])
    {Out: [wide]} = cast(X: [a]) {in_dtype = 5, out_dtype = 6}
    {Out: [b]} = matmul(X: [a], Y: [w])
    {Out: [c]} = matmul(X: [b], Y: [w])
    {Out: [d]} = cast(X: [wide]) {in_dtype = 6, out_dtype = 5}
    {Out: [e]} = matmul(X: [c], Y: [d])
  )",
         "var places int64 [8, 8] var wide float64 [8, 8]");
  AddRun({{"x", Floats({8, 8})}}, {"e"});
  AddRun({{"x", Floats({8, 8})}}, {"a", "places"});
  ExpectSameResults();
  for (const ReusePolicy policy : kPools) {
    SCOPED_TRACE(ReusePolicyName(policy));
    const Plan& plan = PlanOf(0, policy);
    const ValueTable<Life> lives = StorageLives(plan);
    // Nothing reads the places; a is read until b.
    EXPECT_EQ(lives[ValueOf(plan, "places")].last, 0);
    EXPECT_EQ(lives[ValueOf(plan, "a")].last, 2);
    EXPECT_TRUE(ShareBytes(plan, ValueOf(plan, "places"), ValueOf(plan, "wide")));
    EXPECT_TRUE(ShareBytes(plan, ValueOf(plan, "a"), ValueOf(plan, "c")));
  }
}

// fcc1ffab5: the work list of liveness compared a set with a list, so it was never empty.
TEST_F(ReuseHazards, LivenessOfALongProgramComesToAnEnd) {
  constexpr int kPairs = 1500;
  std::string ops = "{Out: [b]} = flip(X: [x]) {axis = ints [0]}\n";
  for (int i = 0; i < kPairs; ++i) {
    ops += "{Out: [a]} = flip(X: [b]) {axis = ints [0]}\n{Out: [a]} = tanh(X: [a])\n";
    ops += "{Out: [b]} = flip(X: [a]) {axis = ints [0]}\n{Out: [b]} = scale(X: [b])\n";
  }
  UseOps(ops);
  AddRun({{"x", Floats({8, 8})}}, {"a"});
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    EXPECT_EQ(PlanOf(0, policy).planned_bytes, 2 * 8 * 8 * 4) << ReusePolicyName(policy);
  }
}

// Gradients read some inputs for their shapes alone: that doesn't keep the data, and must not need
// it either.
TEST_F(ReuseHazards, WhatAGradientReadsForItsShapeMayBeGone) {
  const Variable x = layers::Data("x", {-1, 16});
  const Variable y = layers::Fc(x, 16);
  const Variable loss = layers::Mean(y);
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(loss);
  AddRun({{"x", Floats({4, 16})}}, {loss});
  AddRun({{"x", Floats({4, 16}, 2)}}, {loss, y});
  AddRun({{"x", Floats({4, 16}, 3)}}, {});
  ExpectSameResults();
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    const Plan& plan = PlanOf(0, policy);
    const auto reads_shape = [&](const Instruction& instruction) {
      return instruction.Name() == "mean_grad" && instruction.InputIn("X") == ValueOf(plan, y);
    };
    EXPECT_TRUE(std::ranges::any_of(plan.instructions, reads_shape));
    EXPECT_TRUE(IsOverwritten(plan, ValueOf(plan, y)));
  }
  // The gradient is stored where the values were, of which it only reads the shape.
  const Plan& plan = PlanOf(0, ReusePolicy::kEqual);
  EXPECT_TRUE(ShareBytes(plan, ValueOf(plan, y), ValueOf(plan, y.name() + kGradSuffix)));
}

// ---- variables other than plain float tensors

// #16547: memory went to a variable of another type. Bytes are bytes, but an op in place would
// write elements of another size.
TEST_F(ReuseHazards, BytesPassFromOneTypeToAnother) {
  const Variable x = layers::Data("x", {-1, 16});
  const Variable wide = layers::Cast(x, DType::kFloat64);
  const Variable squares = wide * wide;
  const Variable places = layers::Argsort(x).indices;
  const Variable positive = layers::GreaterThan(x, layers::FillConstant({1}, DType::kFloat32, 0.0));
  const Variable counts = layers::Cast(positive, DType::kInt64) + places;
  const Variable sums = layers::Cast(counts, DType::kFloat64) + squares;
  const Variable halves = layers::Cast(layers::Cast(sums, DType::kFloat32), DType::kInt32);
  const Variable all = layers::ReduceSum(layers::Cast(halves, DType::kFloat64) * sums);
  for (const FetchList& fetches :
       std::vector<FetchList>{{all}, {places, sums, positive, all}, {halves}, {counts, squares}}) {
    AddRun({{"x", Floats({4, 16}, 7)}}, fetches);
  }
  ExpectSameResults();
  const auto dtype_of = [](const Plan& plan, ValueId value) { return plan[value].meta.dtype; };
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    const Plan& plan = PlanOf(0, policy);
    int64_t passed_on = 0;
    for (const ValueId a : plan.ids()) {
      EXPECT_EQ(dtype_of(plan, a), dtype_of(plan, plan.StorageOf(a)));
      for (const ValueId b : plan.ids()) {
        if (b == a) break;
        const bool both =
            plan[plan.StorageOf(a)].offset >= 0 && plan[plan.StorageOf(b)].offset >= 0;
        passed_on += both && dtype_of(plan, a) != dtype_of(plan, b) && ShareBytes(plan, a, b);
      }
    }
    EXPECT_GT(passed_on, 0) << ReusePolicyName(policy);
  }
}

// #19488, #20020, #19188: with memory shared, inference computed something else, in programs with
// ops that look at shapes. (The length of `range` depends on data: the executor refuses it.)
TEST_F(ReuseHazards, InferenceWithShapesAndReshapesComputesTheSame) {
  const Variable image = layers::Data("image", {-1, 3, 6, 6});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  const Variable conv = layers::Conv2d(image, {.filters = 4, .kernel = 3, .padding = 1});
  const Variable norm = layers::BatchNorm(conv, {.act = "relu"});
  const Variable rows = layers::Slice(layers::Cast(layers::ShapeOf(norm), DType::kFloat32),
                                      {.axes = {0}, .starts = {0}, .ends = {1}});
  Variable y = layers::Reshape(norm, {0, 4, -1});
  y = layers::Squeeze(layers::Unsqueeze(layers::Transpose(y, {0, 2, 1}), {1}), {1});
  y = layers::Dropout(layers::Reshape(y, {-1, 144}), 0.4f);
  const Variable logits = layers::Fc(y, 5);
  // When the data of conv is long gone.
  const Variable shape = layers::ShapeOf(conv);
  const Variable scores = layers::Softmax(layers::ElementwiseDiv(logits, rows));
  const Variable loss = layers::Mean(layers::CrossEntropy(scores, label));
  const std::shared_ptr<const Program> test = main_.CloneForTest();
  const std::shared_ptr<const Program> pruned = test->Prune({image.name()}, {scores});
  optimizer::Momentum({.learning_rate = 0.1}).Minimize(loss);
  const size_t testing = AddProgram(test);
  const size_t inference = AddProgram(pruned);
  const auto feeds = [&](int64_t batch, uint64_t seed) {
    return FeedList{{image, Floats({batch, 3, 6, 6}, seed)}, {label, Ids({batch, 1}, 5, seed)}};
  };
  const auto image_only = [&](int64_t batch, uint64_t seed) {
    return FeedList{feeds(batch, seed)[0]};
  };
  AddRun(feeds(4, 1), {loss, shape});
  AddRun(feeds(4, 2), {loss, shape, scores}, testing);
  AddRun(image_only(4, 2), {scores}, inference);
  AddRun(feeds(4, 3), {loss});
  AddRun(image_only(3, 4), {scores}, inference);
  AddRun(feeds(3, 4), {y, scores, shape, logits}, testing);
  ExpectSameResults();
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    const Plan& plan = PlanOf(2, policy);
    EXPECT_EQ(CountOf(plan, "shape"), 1);
    EXPECT_LT(plan.planned_bytes, plan.unshared_bytes / 2);
  }
}

// A batch of -1 had no size to compare: sizes are those of the feeds of the run.
TEST_F(ReuseHazards, SizesAreThoseOfTheBatchAtHand) {
  const Variable x = layers::Data("x", {-1, 16});
  const Variable a = layers::Flip(x, {0});
  const Variable b = layers::Concat({a, layers::Flip(a, {1})}, 1);
  const Variable y = layers::Flip(layers::Tanh(layers::Flip(b, {1})), {0});
  const Variable fixed = layers::Tanh(layers::UniformRandom({6, 16}, {.seed = 3}));
  const Variable both = layers::MatMul(x, fixed, {.transpose_y = true});
  const Variable sum = layers::ReduceSum(both) + layers::ReduceSum(y);
  const std::vector<int64_t> batches = {4, 8, 1, 6, 8, 4};
  for (const int64_t rows : batches) {
    AddRun({{"x", Floats({rows, 16}, static_cast<uint64_t>(rows))}}, {sum, both});
  }
  for (const int64_t rows : {16, 32}) AddRun({{"x", Floats({rows, 16})}}, {y});
  const std::vector<harness::RunTrace> runs = ExpectSameResults();
  for (size_t i = 0; i < batches.size(); ++i) {
    EXPECT_EQ(runs[i].fetches[1].shape(), (Shape{batches[i], 6}));
  }
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    const Plan& small = PlanOf(6, policy);
    const Plan& large = PlanOf(7, policy);
    EXPECT_EQ(large.planned_bytes, 2 * small.planned_bytes) << ReusePolicyName(policy);
  }
}

// ---- gradients

// The gradient of a variable that several ops read is a sum, the terms of which are versions of it.
TEST_F(ReuseHazards, GradientsOfSeveralReadersAddUp) {
  const Variable x = layers::Data("x", {-1, 16}, DType::kFloat32, {.stop_gradient = false});
  const Variable y = layers::Fc(x, 16);
  const Variable z = layers::Tanh(y) + layers::Sigmoid(y) * y + layers::Fc(y, 16) + y;
  const Variable loss = layers::Mean(z * z);
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(loss);
  FetchList terms;
  for (const auto& var : main_.root()->vars()) {
    if (var->name.starts_with(y.name() + kGradSuffix)) terms.push_back(var->name);
  }
  EXPECT_THAT(terms, SizeIs(6)) << "five terms and their sum";
  const FeedList feeds = {{"x", Floats({4, 16})}};
  AddRun(feeds, {loss, "x" + std::string(kGradSuffix)});
  AddRun(feeds, terms);
  AddRun(feeds, {});
  AddRun(feeds, {loss});
  ExpectSameResults();
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    const Plan& plan = PlanOf(0, policy);
    EXPECT_GE(CountOf(plan, "sum"), 1);
    EXPECT_LT(plan.planned_bytes, plan.unshared_bytes);
  }
}

// ---- what shall not be shared

// #14774: a set of names wasn't taken for one of variables, so nothing was left out.
TEST_F(ReuseHazards, WhatIsNamedToBeSkippedSharesWithNothing) {
  const Variable x = layers::Data("x", {-1, 16});
  const Variable a = layers::Fc(x, 16, {.bias_attr = false});
  const Variable b = layers::Tanh(a);
  const Variable c = layers::Reshape(b, {-1, 4, 4});
  const Variable loss = layers::Mean(layers::Fc(c, 16, {.act = "sigmoid"}));
  optimizer::Sgd({.learning_rate = 0.5}).Minimize(loss);
  const std::string gradient = b.name() + kGradSuffix;
  AddRun({{"x", Floats({4, 16})}}, {loss});
  for (const ReusePolicy policy : kSharing) {
    SCOPED_TRACE(ReusePolicyName(policy));
    // A Variable converts to its name.
    const CompileOptions options = {.memory = {.policy = policy, .skip = {a, b, c, gradient}}};
    const Plan& plan = PlanOf(0, options);
    for (const std::string& skipped : options.memory.skip) {
      const ValueId value = ValueOf(plan, skipped);
      for (const ValueId other : plan.ids()) {
        if (other == value || plan[plan.StorageOf(other)].offset < 0) continue;
        EXPECT_FALSE(ShareBytes(plan, value, other)) << skipped << " and " << plan[other].name;
      }
    }
    EXPECT_GT(plan.planned_bytes, PlanOf(0, policy).planned_bytes);
  }
  EXPECT_EQ(ErrorOf([&] { PlanOf(0, {.memory = {.skip = {a.name() + "0"}}}); }).code(),
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace skiff
