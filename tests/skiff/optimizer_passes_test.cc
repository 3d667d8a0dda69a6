// fuse_optimizer, merge_optimizer and flatten_parameters on programs of the public API: the same
// weights, bit by bit, whatever the optimizer; one update op a group; flat storage; checkpoints
// that don't know of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/contiguous_values.h"
#include "framework/ir/op_role.h"
#include "skiff/skiff.h"
#include "tests/harness/temp_directory.h"
#include "tests/skiff/net_training.h"

namespace skiff {
namespace {

using optimizer::Optimizer;
using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

// Passes that run only when asked for.
const std::vector<std::string> kFlat = {"flatten_parameters"};
const std::vector<std::string> kFusedAndFlat = {"fuse_optimizer", "flatten_parameters"};

// y times a matrix of a two-byte dtype.
Variable Half(const Variable& y, DType dtype, ParamAttr attr = {}) {
  const int64_t width = y.dims().back();
  const Variable weights = layers::CreateParameter({width, width}, dtype, attr);
  return layers::Mul(y, layers::Cast(weights, DType::kFloat32));
}

struct NetOptions {
  std::string act = "tanh";
  int64_t plain_layers = 2;
  int64_t half_layers = 0;
  optimizer::MinimizeOptions minimize = {};
  bool averages = false;
};

// Layers whose weights fill no vector and no cache line. Each setting that a parameter may have is
// used by one of them.
std::unique_ptr<Net> MakeNet(const Optimizer& optimizer, const NetOptions& options = {}) {
  auto net = std::make_unique<Net>();
  const ProgramGuard guard(&net->main, &net->startup);
  const Variable x = layers::Data("x", {-1, 7});
  const Variable label = layers::Data("label", {-1, 1}, DType::kInt64);
  Variable y = layers::Fc(x, 5, {.param_attr = {.learning_rate = 0.5f}, .act = options.act});
  y = layers::Fc(y, 9, {.param_attr = {.regularizer = L1Decay(0.0078125f)}, .act = options.act});
  y = layers::Fc(y, 5, {.param_attr = {.need_clip = false}, .act = options.act});
  y = layers::Fc(y, 5, {.param_attr = {.trainable = false}, .act = options.act});
  for (int64_t i = 0; i < options.plain_layers; ++i) y = layers::Fc(y, 5, {.act = options.act});
  if (options.half_layers > 0) {
    y = Half(y, DType::kFloat16);
    y = Half(y, DType::kFloat16, {.learning_rate = 0.5f, .regularizer = L1Decay(0.0078125f)});
    y = Half(y, DType::kBFloat16, {.need_clip = false});
  }
  for (int64_t i = 0; i < options.half_layers; ++i) {
    y = layers::Tanh(Half(y, DType::kBFloat16));
  }
  const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(layers::Fc(y, 3), label));
  optimizer.Minimize(loss, options.minimize);
  if (options.averages) optimizer::ModelAverage({.min_average_window = 2});
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
class Training : public NetTraining {
 public:
  using NetTraining::NetTraining;

  void Steps(int count) {
    for (int i = 0; i < count; ++i) loss_ = Run(Batch(step_++));
  }

  // The fetches of one step.
  std::vector<Tensor> Step(const FetchList& fetches) {
    return compiled().Run(Batch(step_++), fetches);
  }

  float loss() const { return loss_.Item<float>(); }
  BoundProgram Bind() { return NetTraining::Bind(Batch(0)); }
  void set_step(uint64_t step) { step_ = step; }

 private:
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
            all.multi_precision = true;
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
  return {{"merge", {.passes = {.also = {"merge_optimizer"}}}},
          {"fuse", {.passes = {.also = {"fuse_optimizer"}}}},
          {"flatten", {.passes = {.also = kFlat}}},
          {"fuse and flatten", {.passes = {.also = kFusedAndFlat}}},
          // Then float32 tensors have no gaps, and those of an odd number of two-byte elements
          // have.
          {"flatten densely", {.memory = {.flat_alignment_bytes = 4}, .passes = {.also = kFlat}}}};
}

class OptimizerPasses : public ::testing::TestWithParam<OptimizerSpec> {
 protected:
  static std::unique_ptr<Net> Make(GradientClip clip = {}, Regularizer regularization = {},
                                   const NetOptions& options = {.half_layers = 2}) {
    return MakeNet(*GetParam().make(clip, regularization), options);
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

// Those of master weights among them.
TEST_P(OptimizerPasses, ChangeNoBitOfAverages) {
  ExpectSameWeights(*Make({}, {}, {.half_layers = 2, .averages = true}));
}

// Ops of the optimizer that a run of the flat program does.
int64_t OptimizerInstructions(const Net& net) {
  Training training(net, {.passes = {.also = kFusedAndFlat}});
  const Plan plan = training.Bind().plan();
  return std::ranges::count_if(plan.instructions, [](const Instruction& instruction) {
    return (instruction.op->role() & kRoleOptimize) != 0;
  });
}

TEST_P(OptimizerPasses, RunAsManyOpsForManyTensorsAsForFew) {
  const optimizer::MinimizeOptions gated{.gradient_merge = {.steps = 2, .mean = false},
                                         .skip_non_finite = true};
  for (const optimizer::MinimizeOptions& minimize : {optimizer::MinimizeOptions{}, gated}) {
    const auto ops_of = [&](int64_t layers) {
      return OptimizerInstructions(
          *Make(ClipByGlobalNorm(0.0625f), L2Decay(0.015625f),
                {.plain_layers = layers, .minimize = minimize, .averages = true}));
    };
    EXPECT_EQ(ops_of(20), ops_of(2)) << minimize.skip_non_finite;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerPasses, ::testing::ValuesIn(Optimizers()),
                         [](const auto& info) { return info.param.name; });

int64_t InstructionsOf(const Plan& plan, std::string_view part) {
  return std::ranges::count_if(plan.instructions, [&](const Instruction& instruction) {
    return instruction.Name().find(part) != std::string::npos;
  });
}

// A net after a few steps without passes and with them: the weights are the same.
struct PlainAndFlat {
  explicit PlainAndFlat(const Net& net)
      : plain(net), flat(net, {.passes = {.also = kFusedAndFlat}}) {
    plain.Steps(3);
    flat.Steps(3);
    EXPECT_EQ(flat.Hash(), plain.Hash());
  }

  Training plain, flat;
};

// 400 weights and biases of one kind.
std::unique_ptr<Net> ManyTensors() {
  return MakeNet(optimizer::Adam({.learning_rate = 0.001,
                                  .clip = ClipByGlobalNorm(1.0f),
                                  .regularization = L2Decay(0.0078125f)}),
                 {.plain_layers = 196});
}

TEST(OptimizerPassesOnManyTensors, ChangeNoBitAndMakeFewOps) {
  const std::unique_ptr<Net> net = ManyTensors();
  PlainAndFlat both(*net);
  const Plan loop = both.plain.Bind().plan();
  const Plan fused = both.flat.Bind().plan();
  EXPECT_EQ(InstructionsOf(loop, "adam"), 401);
  // One for each learning rate, decay and side of clipping that MakeNet gives them.
  EXPECT_EQ(InstructionsOf(fused, "adam"), 4);
  EXPECT_EQ(InstructionsOf(loop, "squared_l2_norm"), 400);
  EXPECT_EQ(InstructionsOf(fused, "squared_l2_norm"), 0);
  EXPECT_EQ(InstructionsOf(fused, "squared_global_norm"), 1);
  EXPECT_EQ(InstructionsOf(fused, "copy"), InstructionsOf(loop, "copy"));
}

// No cast of a gradient is left, nor anything else of which there is one a tensor.
TEST(OptimizerPassesOnManyTensors, ReadTwoByteGradientsAsTheyAre) {
  constexpr int64_t kHalfLayers = 100;
  const std::unique_ptr<Net> net = MakeNet(optimizer::Adam({.learning_rate = 0.001,
                                                            .clip = ClipByGlobalNorm(1.0f),
                                                            .regularization = L2Decay(0.0078125f),
                                                            .multi_precision = true}),
                                           {.half_layers = kHalfLayers});
  PlainAndFlat both(*net);
  const Plan loop = both.plain.Bind().plan();
  const Plan fused = both.flat.Bind().plan();
  EXPECT_EQ(InstructionsOf(loop, "cast") - InstructionsOf(fused, "cast"), kHalfLayers + 3);
  EXPECT_EQ(InstructionsOf(fused, "squared_l2_norm"), 0);
  EXPECT_EQ(InstructionsOf(fused, "squared_global_norm"), 1);
  EXPECT_EQ(InstructionsOf(loop, "adam"), 16 + kHalfLayers);
  // 4 of float32, as above; of bfloat16 2, as one isn't clipped; 2 of float16, with different
  // rates.
  EXPECT_EQ(InstructionsOf(fused, "adam"), 8);
}

// Expects the variables one after the other in one buffer, in this order.
void ExpectFlat(Scope& scope, const std::vector<std::string>& names, int64_t alignment) {
  const Tensor* previous = nullptr;
  for (const std::string& name : names) {
    const Tensor& tensor = scope.Get(name);
    if (previous != nullptr) {
      EXPECT_EQ(tensor.buffer(), previous->buffer()) << name;
      const int64_t gap = tensor.offset_bytes() - previous->offset_bytes() - previous->byte_count();
      EXPECT_THAT(gap, AllOf(Ge(0), Le(alignment - 1))) << name;
      EXPECT_EQ(tensor.offset_bytes() % alignment, 0) << name;
    }
    previous = &tensor;
  }
}

bool IsNumber(const Tensor& tensor) { return tensor.element_count() == 1; }

// The lists of persistables of the updates.
std::vector<std::vector<std::string>> FlatLists(const Program& program) {
  std::vector<std::vector<std::string>> lists;
  for (const auto& op : program.root()->ops()) {
    if (op->Output("ParamOut").empty() || !op->Attr<bool>("is_flat", false)) continue;
    for (const SlotArguments& list : op->inputs) {
      if (list.arguments.size() > 1 && list.slot != "Grad") lists.push_back(list.arguments);
    }
  }
  return lists;
}

void ExpectAllFlat(Training& training, int64_t alignment = 64) {
  const std::vector<std::vector<std::string>> lists = FlatLists(training.compiled().program());
  EXPECT_GE(lists.size(), 5U);  // Param, both moments, both powers
  for (const std::vector<std::string>& names : lists) {
    // Numbers need no place for vectors: there are thousands of them.
    const bool is_packed = IsNumber(training.scope().Get(names[0]));
    ExpectFlat(training.scope(), names, is_packed ? 4 : alignment);
  }
}

TEST(FlattenedParameters, AreStoredOneAfterTheOther) {
  const std::unique_ptr<Net> net = MakeNet(
      optimizer::Adam({.learning_rate = 0.001, .multi_precision = true}), {.half_layers = 2});
  for (const int64_t alignment : {4, 64, 4096}) {
    Training training(*net,
                      {.memory = {.flat_alignment_bytes = alignment}, .passes = {.also = kFlat}});
    training.Steps(1);
    ExpectAllFlat(training, alignment);
  }
}

// So do sums of parameters and of gradients, except that parameters in them are where the updates
// have them.
// A gradient that a single op decays is none of the scope's.
bool AreHeld(const Scope& scope, const std::vector<std::string>& names) {
  return std::ranges::all_of(names,
                             [&](const std::string& name) { return scope.Find(name) != nullptr; });
}

TEST(FlattenedParameters, HaveTheirSumsFlatToo) {
  const std::unique_ptr<Net> net =
      MakeNet(optimizer::Adam({.learning_rate = 0.001}),
              {.minimize = {.gradient_merge = {.steps = 2, .mean = false}}, .averages = true});
  Training plain(*net, {});
  plain.Steps(5);
  for (const bool fuse : {false, true}) {
    Training flat(*net, {.passes = {.also = fuse ? kFusedAndFlat : kFlat}});
    flat.Steps(5);
    EXPECT_EQ(flat.Hash(), plain.Hash());
    ExpectAllFlat(flat);
    int sums = 0;
    for (const auto& op : flat.compiled().program().root()->ops()) {
      if (op->type == "average_accumulates") {
        EXPECT_TRUE(op->Attr<bool>("is_flat", false));
        ++sums;
        for (const char* slot : {"in_sum_1", "in_sum_2", "in_sum_3"}) {
          ExpectFlat(flat.scope(), op->Input(slot), 64);
        }
        ExpectFlat(flat.scope(), op->Input("in_num_updates"), 8);
      } else if (op->type.ends_with("adam") && AreHeld(flat.scope(), op->Input("Grad"))) {
        ++sums;
        ExpectFlat(flat.scope(), op->Input("Grad"), 64);
      }
    }
    EXPECT_GE(sums, fuse ? 3 : 2);  // the averages, and lists of gradients
  }
}

// Backward ops write each gradient where the update reads it: there is nothing to copy.
TEST(FlattenedParameters, HaveTheirGradientsInOnePartOfTheArena) {
  const std::unique_ptr<Net> net = ManyTensors();
  Training flat(*net, {.passes = {.also = kFusedAndFlat}});
  const Plan plan = flat.Bind().plan();
  ASSERT_EQ(plan.contiguous.size(), 1U);
  EXPECT_EQ(plan.contiguous[0].values.size(), 398U);
  const std::vector<std::vector<ContiguousSlice>> slices = ContiguousSlices(plan);
  ASSERT_EQ(slices[0].size(), 398U);
  const auto offset = [&](const ContiguousSlice& slice) { return plan[slice.root].offset; };
  for (const ContiguousSlice& slice : slices[0]) {
    EXPECT_EQ(offset(slice) - offset(slices[0][0]), slice.offset);
    EXPECT_EQ(slice.offset % 64, 0);
  }
  EXPECT_EQ(InstructionsOf(plan, "copy"), 0);
  EXPECT_EQ(InstructionsOf(plan, "coalesce"), 0);
}

std::string BitsOf(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.raw_data()), static_cast<size_t>(tensor.byte_count())};
}

// A gradient that is fetched outlives the update that reads it, and isn't clipped or decayed; a
// parameter is the updated one.
TEST(FlattenedParameters, ChangeNoBitOfWhatIsFetched) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Adam({.learning_rate = 0.01,
                                                            .clip = ClipByGlobalNorm(0.0625f),
                                                            .regularization = L2Decay(0.015625f),
                                                            .multi_precision = true}),
                                           {.half_layers = 2});
  FetchList all = {net->loss};
  for (const auto& var : net->main.root()->vars()) {
    const std::string gradient = var->name + "@GRAD";
    if (!var->is_parameter || net->main.root()->FindLocalVar(gradient) == nullptr) continue;
    all.push_back(gradient);
    all.push_back(var->name);
  }
  ASSERT_GT(all.size(), 20U);
  const FetchList one_gradient = {all[7]};
  const FetchList one_parameter = {all[8]};
  for (const FetchList& fetches : {all, one_gradient, one_parameter}) {
    for (PassesSpec& passes : PassesOn()) {
      passes.options.memory.poison_dead_memory = true;
      Training plain(*net, {});
      Training changed(*net, passes.options);
      for (int step = 0; step < 3; ++step) {
        const std::vector<Tensor> expected = plain.Step(fetches);
        const std::vector<Tensor> found = changed.Step(fetches);
        for (size_t i = 0; i < fetches.size(); ++i) {
          EXPECT_EQ(BitsOf(found[i]), BitsOf(expected[i])) << passes.name << ' ' << fetches[i];
        }
      }
      EXPECT_EQ(changed.Hash(), plain.Hash()) << passes.name;
    }
  }
}

// Flat gradients live up to the update at the end, so activations matter less; still, they may be
// recomputed.
TEST(FlattenedParameters, ChangeNoBitOfWhatIsRecomputed) {
  const std::unique_ptr<Net> net =
      MakeNet(optimizer::Adam({.learning_rate = 0.01, .clip = ClipByGlobalNorm(0.0625f)}),
              {.act = "gelu", .plain_layers = 12});
  const auto with = [](MemoryOptions memory) {
    memory.poison_dead_memory = true;
    return CompileOptions{.memory = memory, .passes = {.also = kFusedAndFlat}};
  };
  const auto planned_bytes = [&](Recompute recompute) {
    return Training(*net, with({.recompute = recompute})).Bind().statistics().planned_bytes;
  };
  const int64_t most = planned_bytes(Recompute::kNothing);
  const int64_t least = planned_bytes(Recompute::kLeastMemory);
  ASSERT_LT(least, most);
  Training plain(*net, {});
  plain.Steps(5);
  const Plan kept = Training(*net, with({})).Bind().plan();
  for (const MemoryOptions& memory :
       {MemoryOptions{.recompute = Recompute::kCheapOps},
        MemoryOptions{.recompute = Recompute::kBudget, .budget_bytes = (least + most) / 2},
        MemoryOptions{.recompute = Recompute::kBudget, .budget_bytes = least}}) {
    Training flat(*net, with(memory));
    flat.Steps(5);
    EXPECT_EQ(flat.loss(), plain.loss()) << RecomputeName(memory.recompute);
    EXPECT_EQ(flat.Hash(), plain.Hash()) << RecomputeName(memory.recompute);
    const BoundProgram bound = flat.Bind();
    EXPECT_GT(bound.plan().instructions.size(), kept.instructions.size());
    EXPECT_EQ(bound.plan().contiguous.size(), kept.contiguous.size());
    if (memory.budget_bytes > 0) {
      EXPECT_LE(bound.statistics().planned_bytes, memory.budget_bytes);
    }
    ExpectAllFlat(flat);
  }
}

// The scope's storage moves when parameters are loaded, and the next run puts it right.
TEST(FlattenedParameters, MayBeSetFromOutside) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Adam({.learning_rate = 0.001}));
  Training plain(*net, {});
  Training flat(*net, {.passes = {.also = kFlat}});
  for (Training* training : {&plain, &flat}) {
    training->Steps(1);
    for (const std::string& name : PersistableNames(net->main)) {
      Tensor copy = CopyToCpu(training->scope().Get(name));
      training->scope().Set(name, copy);
    }
    training->Steps(2);
  }
  EXPECT_EQ(flat.Hash(), plain.Hash());
  ExpectAllFlat(flat);
}

// Two flat programs that want the same parameters elsewhere: those of the first one are moved once,
// and from then on neither moves anything nor plans anew.
TEST(FlattenedParameters, StayWhereAnotherProgramHasLaidThem) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Adam({.learning_rate = 0.01}));
  // Trains all but a few.
  const std::unique_ptr<Program> part = net->main.Clone();
  size_t removed = 0;
  for (size_t i = part->root()->ops().size(); i-- > 0 && removed < 3;) {
    if (part->root()->ops()[i]->type != "adam" || i % 2 == 0) continue;
    part->root()->RemoveOps(i, i + 1);
    ++removed;
  }
  ASSERT_EQ(removed, 3U);
  const CompileOptions flat{.passes = {.also = kFlat}};
  const std::vector<std::pair<const Program*, CompileOptions>> others = {
      {part.get(), flat},
      {&net->main, {.memory = {.flat_alignment_bytes = 4}, .passes = {.also = kFlat}}}};
  for (const auto& [program, options] : others) {
    std::string expected;
    for (const bool is_flat : {false, true}) {
      Executor executor(Place::Cpu());
      Scope& scope = executor.scope();
      executor.Run(net->startup);
      CompiledProgram first = executor.Compile(net->main, is_flat ? flat : CompileOptions{});
      CompiledProgram second = executor.Compile(*program, is_flat ? options : CompileOptions{});
      const auto run_both = [&](uint64_t step) {
        first.Run(Batch(step), {net->loss});
        second.Run(Batch(step + 1), {net->loss});
      };
      run_both(0);
      run_both(2);
      const uint64_t generation = scope.generation();
      for (uint64_t step = 4; step < 10; step += 2) run_both(step);
      EXPECT_EQ(scope.generation(), generation);
      BoundProgram first_bound = first.Bind(Batch(0), {net->loss});
      BoundProgram second_bound = second.Bind(Batch(0), {net->loss});
      first_bound.Step();
      second_bound.Step();
      const std::string hash = WeightsHash(scope, PersistableNames(net->main));
      if (!is_flat) expected = hash;
      EXPECT_EQ(hash, expected);
    }
  }
}

// A program that comes later, and needs other lists, isn't bound to those of one that is gone.
TEST(FlattenedParameters, AreMovedByAProgramThatIsNew) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Adam({.learning_rate = 0.01}));
  Executor executor(Place::Cpu());
  executor.Run(net->startup);
  for (const int64_t alignment : {64, 128, 64}) {
    CompiledProgram flat = executor.Compile(
        net->main, {.memory = {.flat_alignment_bytes = alignment}, .passes = {.also = kFlat}});
    flat.Run(Batch(0), {net->loss});
    for (const std::vector<std::string>& names : FlatLists(flat.program())) {
      const bool is_packed = IsNumber(executor.scope().Get(names[0]));
      ExpectFlat(executor.scope(), names, is_packed ? 4 : alignment);
    }
  }
}

// What was bound before the parameters were laid flat says so.
TEST(FlattenedParameters, EndWhatWasBoundBefore) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Adam({.learning_rate = 0.001}));
  Executor executor(Place::Cpu());
  executor.Run(net->startup);
  CompiledProgram plain = executor.Compile(net->main);
  CompiledProgram flat = executor.Compile(net->main, {.passes = {.also = kFlat}});
  BoundProgram before = plain.Bind(Batch(0), {net->loss});
  EXPECT_TRUE(before.is_current());
  BoundProgram bound = flat.Bind(Batch(0), {net->loss});
  EXPECT_FALSE(before.is_current());
  bound.Step();
  BoundProgram after = plain.Bind(Batch(0), {net->loss});
  after.Step();
  bound.Step();
}

// A clone that was made before keeps those that were moved as they were.
TEST(FlattenedParameters, AreSeenByClonesThatAreMadeAfterwards) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Sgd({.learning_rate = 0.5}));
  Executor executor(Place::Cpu());
  executor.Run(net->startup);
  CompiledProgram test = executor.Compile(*net->main.CloneForTest());
  CompiledProgram flat = executor.Compile(net->main, {.passes = {.also = kFlat}});
  const auto loss = [&](CompiledProgram& program) {
    return program.Run(Batch(0), {net->loss})[0].Item<float>();
  };
  const float untrained = loss(test);
  CompiledProgram before = test.Clone();
  flat.Run(Batch(0), {net->loss});
  CompiledProgram after = test.Clone();
  for (int step = 0; step < 3; ++step) {
    flat.Run(Batch(0), {net->loss});
    EXPECT_EQ(loss(after), loss(test));
    EXPECT_NE(loss(before), loss(test));
    EXPECT_LT(loss(after), untrained);
  }
}

// A checkpoint written with the one is read with the other, and training goes on as if nothing had
// happened.
TEST(FlattenedParameters, LeaveNoTraceInCheckpoints) {
  const std::unique_ptr<Net> net = MakeNet(
      optimizer::Adam({.learning_rate = 0.01, .multi_precision = true}), {.half_layers = 2});
  Training uninterrupted(*net, {});
  uninterrupted.Steps(6);
  const CompileOptions flat{.passes = {.also = kFusedAndFlat}};
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

// In a program that was written by hand.
TEST(FlattenedParameters, RefuseAMarkThatIsNoBool) {
  const std::unique_ptr<Net> net = MakeNet(optimizer::Sgd());
  net->main.root()->ops().back()->SetAttr("is_flat", 2);
  Executor executor(Place::Cpu());
  try {
    executor.Compile(net->main);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(
        error.what(),
        ::testing::HasSubstr("sgd: attribute \"is_flat\" is of type int, expected bool; found 2"));
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
