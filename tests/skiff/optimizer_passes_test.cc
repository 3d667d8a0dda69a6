// fuse_optimizer, merge_optimizer and flatten_parameters on programs of the public API: the same
// weights, bit by bit, whatever the optimizer; one update op a group; flat storage; checkpoints
// that don't know of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "framework/analysis/contiguous_values.h"
#include "skiff/skiff.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using optimizer::Optimizer;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

struct Net {
  Program main;
  Program startup;
  std::string loss;
};

// Layers whose weights fill no vector and no line of a cache; each setting that a parameter may
// have stands at one of them.
std::unique_ptr<Net> MakeNet(const Optimizer& optimizer, int64_t plain_layers = 2) {
  auto net = std::make_unique<Net>();
  const ProgramGuard guard(&net->main, &net->startup);
  const Variable x = layers::Data("x", {-1, 7});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  Variable y = layers::Fc(x, 5, {.param_attr = {.learning_rate = 0.5f}, .act = "tanh"});
  y = layers::Fc(y, 9, {.param_attr = {.regularizer = L1Decay(0.0078125f)}, .act = "tanh"});
  y = layers::Fc(y, 5, {.param_attr = {.need_clip = false}, .act = "tanh"});
  y = layers::Fc(y, 5, {.param_attr = {.trainable = false}, .act = "tanh"});
  for (int64_t i = 0; i < plain_layers; ++i) y = layers::Fc(y, 5, {.act = "tanh"});
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(layers::Fc(y, 3), label));
  optimizer.Minimize(loss);
  net->loss = loss.name();
  return net;
}

FeedList Batch(uint64_t seed) {
  constexpr int64_t kSize = 6;
  Tensor x({kSize, 7}, DType::kFloat32);
  Tensor label({kSize, 1}, DType::kInt64);
  const Philox philox({seed, 0, 0});
  for (int64_t i = 0; i < x.element_count(); ++i) {
    x.data<float>()[i] = UnitFloat(philox.At(static_cast<uint64_t>(i))[0]) - 0.5f;
  }
  for (int64_t i = 0; i < kSize; ++i) label.data<int64_t>()[i] = i % 3;
  return {{"x", x}, {"label", label}};
}

// What a net, an executor and options make in some steps.
class Training {
 public:
  Training(const Net& net, const CompileOptions& options)
      : net_(net), compiled_(Start(net, options)) {}

  void Steps(int count) {
    for (int i = 0; i < count; ++i) loss_ = compiled_.Run(Batch(step_++), {net_.loss})[0];
  }

  std::string Hash() const { return WeightsHash(executor_.scope(), PersistableNames(net_.main)); }
  float loss() const { return loss_.Item<float>(); }
  Scope& scope() { return executor_.scope(); }
  const Program& program() const { return compiled_.program(); }
  BoundProgram Bind() { return compiled_.Bind(Batch(0), {net_.loss}); }
  void set_step(uint64_t step) { step_ = step; }

 private:
  CompiledProgram Start(const Net& net, const CompileOptions& options) {
    executor_.Run(net.startup);
    return executor_.Compile(net.main, options);
  }

  const Net& net_;
  Executor executor_{Place::Cpu()};
  CompiledProgram compiled_;
  Tensor loss_;
  uint64_t step_ = 0;
};

struct OptimizerSpec {
  std::string name;
  std::function<std::unique_ptr<Optimizer>(GradientClip, Regularizer)> make;
};

template <class Made, class Options>
OptimizerSpec Spec(const std::string& name, Options options) {
  return {name, [options](GradientClip clip, Regularizer regularization) {
            Options all = options;
            all.clip = clip;
            all.regularization = regularization;
            return std::make_unique<Made>(all);
          }};
}

std::vector<OptimizerSpec> Optimizers() {
  using namespace optimizer;  // NOLINT(google-build-using-namespace): a table of all of them
  return {Spec<Sgd>("sgd", SgdOptions{.learning_rate = 0.1}),
          Spec<Momentum>("momentum", MomentumOptions{.learning_rate = 0.1}),
          Spec<Momentum>("nesterov", MomentumOptions{.learning_rate = 0.1, .use_nesterov = true}),
          Spec<LarsMomentum>(
              "lars", LarsMomentumOptions{.learning_rate = 0.1, .exclude_from_decay = {".b_"}}),
          Spec<Adam>("adam", AdamOptions{.learning_rate = 0.01}),
          Spec<AdamW>("adamw", AdamWOptions{.learning_rate = 0.01, .exclude_from_decay = {".b_"}}),
          Spec<Adamax>("adamax", AdamaxOptions{.learning_rate = 0.01}),
          Spec<Adagrad>("adagrad", AdagradOptions{.learning_rate = 0.01}),
          Spec<DecayedAdagrad>("decayed_adagrad", DecayedAdagradOptions{.learning_rate = 0.01}),
          Spec<Adadelta>("adadelta", AdadeltaOptions{.learning_rate = 0.1}),
          Spec<RmsProp>("rmsprop", RmsPropOptions{.learning_rate = 0.01, .centered = true}),
          Spec<Ftrl>("ftrl", FtrlOptions{.learning_rate = 0.01, .l1 = 0.001f}),
          Spec<Lamb>("lamb", LambOptions{.learning_rate = 0.01, .exclude_from_decay = {".b_"}})};
}

struct PassesSpec {
  std::string name;
  CompileOptions options;
};

std::vector<PassesSpec> PassesOn() {
  return {{"merge", {.merge_optimizer = true}},
          {"fuse", {.fuse_optimizer = true}},
          {"flatten", {.flatten_parameters = true}},
          {"fuse and flatten", {.fuse_optimizer = true, .flatten_parameters = true}}};
}

class OptimizerPasses : public ::testing::TestWithParam<OptimizerSpec> {
 protected:
  static std::unique_ptr<Net> Make(GradientClip clip = {}, Regularizer regularization = {}) {
    return MakeNet(*GetParam().make(clip, regularization));
  }

  static void ExpectSameWeights(const Net& net) {
    constexpr int kSteps = 5;
    Training plain(net, {});
    plain.Steps(kSteps);
    for (PassesSpec& passes : PassesOn()) {
      Training changed(net, passes.options);
      changed.Steps(kSteps);
      EXPECT_EQ(changed.loss(), plain.loss()) << passes.name;
      EXPECT_EQ(changed.Hash(), plain.Hash()) << passes.name;
    }
  }
};

TEST_P(OptimizerPasses, ChangeNoBit) { ExpectSameWeights(*Make()); }

TEST_P(OptimizerPasses, ChangeNoBitOfClippedAndDecayedSteps) {
  // So small that it clips.
  ExpectSameWeights(*Make(ClipByGlobalNorm(0.0625f), L2Decay(0.015625f)));
  ExpectSameWeights(*Make(ClipByNorm(0.03125f), L1Decay(0.015625f)));
  ExpectSameWeights(*Make(ClipByValue(0.0078125f)));
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerPasses, ::testing::ValuesIn(Optimizers()),
                         [](const auto& info) { return info.param.name; });

int64_t InstructionsOf(const Plan& plan, std::string_view part) {
  return std::ranges::count_if(plan.instructions, [&](const Instruction& instruction) {
    return instruction.Name().find(part) != std::string::npos;
  });
}

// 400 weights and biases of one kind.
std::unique_ptr<Net> ManyTensors() {
  return MakeNet(optimizer::Adam({.learning_rate = 0.001,
                                  .clip = ClipByGlobalNorm(1.0f),
                                  .regularization = L2Decay(0.0078125f)}),
                 196);
}

TEST(OptimizerPassesOnManyTensors, ChangeNoBitAndMakeFewOps) {
  const std::unique_ptr<Net> net = ManyTensors();
  Training plain(*net, {});
  plain.Steps(3);
  Training flat(*net, {.fuse_optimizer = true, .flatten_parameters = true});
  flat.Steps(3);
  EXPECT_EQ(flat.Hash(), plain.Hash());
  const Plan loop = plain.Bind().plan();
  const Plan fused = flat.Bind().plan();
  EXPECT_EQ(InstructionsOf(loop, "adam"), 401);
  // One for each learning rate, decay and side of clipping that MakeNet gives them.
  EXPECT_EQ(InstructionsOf(fused, "adam"), 4);
  EXPECT_EQ(InstructionsOf(loop, "squared_l2_norm"), 400);
  EXPECT_EQ(InstructionsOf(fused, "squared_l2_norm"), 0);
  EXPECT_EQ(InstructionsOf(fused, "squared_global_norm"), 1);
  EXPECT_EQ(InstructionsOf(fused, "copy"), InstructionsOf(loop, "copy"));
}

TEST(FlattenedParameters, LieOneBehindTheOther) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Adam({.learning_rate = 0.001}));
  for (const int64_t alignment : {4, 64, 4096}) {
    Training training(*net,
                      {.memory = {.flat_alignment_bytes = alignment}, .flatten_parameters = true});
    training.Steps(1);
    int lists = 0;
    for (const auto& op : training.program().root()->ops()) {
      if (!op->Attr<bool>("is_flat", false)) continue;
      for (const SlotArguments& list : op->inputs) {
        if (list.arguments.size() < 2 || list.slot == "Grad") continue;
        ++lists;
        const Tensor* previous = nullptr;
        for (const std::string& name : list.arguments) {
          const Tensor& tensor = training.scope().Get(name);
          if (previous != nullptr) {
            EXPECT_EQ(tensor.buffer(), previous->buffer()) << name;
            const int64_t gap =
                tensor.offset_bytes() - previous->offset_bytes() - previous->byte_count();
            EXPECT_THAT(gap, AllOf(Ge(0), Le(alignment - 1))) << name;
            EXPECT_EQ(tensor.offset_bytes() % alignment, 0) << name;
          }
          previous = &tensor;
        }
      }
    }
    EXPECT_GE(lists, 5);  // Param, both moments, both powers
  }
}

// Backward ops write each gradient where the update reads it: there is nothing to copy.
TEST(FlattenedParameters, HaveTheirGradientsInOnePartOfTheArena) {
  const std::unique_ptr<Net> net = ManyTensors();
  Training flat(*net, {.fuse_optimizer = true, .flatten_parameters = true});
  const Plan plan = flat.Bind().plan();
  ASSERT_EQ(plan.contiguous.size(), 1U);
  EXPECT_EQ(plan.contiguous[0].values.size(), 398U);
  const std::vector<std::vector<ContiguousSlice>> slices = ContiguousSlices(plan);
  ASSERT_EQ(slices[0].size(), 398U);
  const auto offset = [&](const ContiguousSlice& slice) {
    return plan.values[static_cast<size_t>(slice.root)].offset;
  };
  for (const ContiguousSlice& slice : slices[0]) {
    EXPECT_EQ(offset(slice) - offset(slices[0][0]), slice.offset);
    EXPECT_EQ(slice.offset % 64, 0);
  }
  EXPECT_EQ(InstructionsOf(plan, "copy"), 0);
  EXPECT_EQ(InstructionsOf(plan, "coalesce"), 0);
}

// The scope's storage moves when parameters are loaded, and the next run puts it right.
TEST(FlattenedParameters, MayBeSetFromOutside) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Adam({.learning_rate = 0.001}));
  Training plain(*net, {});
  Training flat(*net, {.flatten_parameters = true});
  for (Training* training : {&plain, &flat}) {
    training->Steps(1);
    for (const std::string& name : PersistableNames(net->main)) {
      Tensor copy = CopyToCpu(training->scope().Get(name));
      training->scope().Set(name, copy);
    }
    training->Steps(2);
  }
  EXPECT_EQ(flat.Hash(), plain.Hash());
}

// What was bound before the parameters were laid flat says so.
TEST(FlattenedParameters, EndWhatWasBoundBefore) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Adam({.learning_rate = 0.001}));
  Executor executor(Place::Cpu());
  executor.Run(net->startup);
  CompiledProgram plain = executor.Compile(net->main);
  CompiledProgram flat = executor.Compile(net->main, {.flatten_parameters = true});
  BoundProgram before = plain.Bind(Batch(0), {net->loss});
  EXPECT_TRUE(before.is_current());
  BoundProgram bound = flat.Bind(Batch(0), {net->loss});
  EXPECT_FALSE(before.is_current());
  bound.Step();
  BoundProgram after = plain.Bind(Batch(0), {net->loss});
  after.Step();
  bound.Step();
}

// A checkpoint written with the one is read with the other, and training goes on as if nothing had
// happened.
TEST(FlattenedParameters, LeaveNoTraceInCheckpoints) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Adam({.learning_rate = 0.01}));
  Training uninterrupted(*net, {});
  uninterrupted.Steps(6);
  const CompileOptions flat{.fuse_optimizer = true, .flatten_parameters = true};
  for (const bool flat_first : {false, true}) {
    const TempDirectory directory;
    Training before(*net, flat_first ? flat : CompileOptions{});
    before.Steps(3);
    SaveCheckpoint(directory.path(), net->main, before.scope(), 3, {});
    Training after(*net, flat_first ? CompileOptions{} : flat);
    LoadLatestCheckpoint(directory.path(), net->main, &after.scope());
    after.set_step(3);
    after.Steps(3);
    EXPECT_EQ(after.Hash(), uninterrupted.Hash()) << flat_first;
  }
}

TEST(FlattenedParameters, RefuseAnAlignmentThatIsNoPowerOfTwo) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Sgd());
  Executor executor(Place::Cpu());
  for (const int64_t alignment : {0, -4, 48}) {
    ExpectError(
        [&] { executor.Compile(net->main, {.memory = {.flat_alignment_bytes = alignment}}); },
        ErrorCode::kInvalidArgument,
        StrCat("option memory.flat_alignment_bytes = ", alignment, ": expected a power of two"));
  }
}

}  // namespace
}  // namespace skiff
