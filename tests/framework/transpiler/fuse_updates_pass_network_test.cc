#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/exponential_moving_average.h"
#include "framework/builder/optimizer/lamb.h"
#include "framework/builder/optimizer/model_average.h"
#include "framework/builder/tensor.h"
#include "tests/framework/transpiler/bound_network.h"
#include "tests/framework/transpiler/optimizer_program.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Enough weights for three threads, in no whole number of blocks or vectors.
Variable Layer(const Variable& x) { return layers::Fc(x, 267, {.act = "tanh"}); }
const Shape kImage = {2, 101};

void AddAverage(Program*) { const optimizer::ExponentialMovingAverage average({.decay = 0.75f}); }

void AddBothAverages(Program* program) {
  AddAverage(program);
  const optimizer::ModelAverage average({.min_average_window = 2, .max_num_accumulates = 2});
}

// A network that `optimizer` trains, in rounds of two runs.
std::function<Variable(const Variable&)> InRounds(const optimizer::Optimizer& optimizer) {
  return [&optimizer](const Variable& x) {
    const Variable loss = layers::Mean(Layer(x));
    optimizer.Minimize(loss, {.gradient_merge = {.steps = 2}});
    return loss;
  };
}

// Five steps give the same as without the pass, averages included; the names of what is fused.
std::vector<std::string> FusedToTheSameBits(const std::function<Variable(const Variable&)>& network,
                                            BoundNetwork::Options options) {
  BoundNetwork fused(network, options);
  options.skip.push_back("fuse_updates");
  BoundNetwork plain(network, options);
  EXPECT_THAT(plain.Fused(), Each(Not(HasSubstr("average"))));
  for (int step = 0; step < 5; ++step) EXPECT_EQ(fused.Step(), plain.Step()) << step;
  return fused.Fused();
}

TEST(FuseUpdatesPass, AveragesAParameterBehindItsUpdate) {
  const std::vector<std::string> fused =
      FusedToTheSameBits(Layer, {.image = kImage,
                                 .fetches = {"fc_0.w_0", "fc_0.w_0_ema_0", "fc_0.b_0_ema_0"},
                                 .edit = AddAverage});
  EXPECT_THAT(fused, ElementsAre("fused(sgd,exponential_moving_average)",
                                 "fused(sgd,exponential_moving_average)"));
}

TEST(FuseUpdatesPass, AveragesListsInAllWaysThatThereAre) {
  for (int threads : {1, 2, 3}) {
    const harness::ThreadCount scope(threads);
    const std::vector<std::string> fused =
        FusedToTheSameBits(Layer, {.image = kImage,
                                   .also = {"merge_optimizer", "flatten_parameters"},
                                   .fetches = {"fc_0.w_0", "fc_0.w_0_ema_0", "fc_0.w_0_sum_1_0",
                                               "fc_0.w_0_sum_2_0", "fc_0.b_0_sum_3_0"},
                                   .edit = AddBothAverages});
    EXPECT_THAT(fused, ElementsAre("fused(sgd,average_accumulates,exponential_moving_average)"));
  }
}

// The running statistics, which nobody updates, are averaged for themselves.
TEST(FuseUpdatesPass, CutsAveragesByWhoUpdatesTheParameters) {
  const auto network = [](const Variable& x) {
    const auto layer = [](const Variable& y, float rate) {
      return layers::Fc(y, 9, {.param_attr = {.learning_rate = rate}, .act = "tanh"});
    };
    return layer(layer(layers::BatchNorm(layer(layer(x, 0.5f), 1.0f)), 0.5f), 1.0f);
  };
  const std::vector<std::string> fused = FusedToTheSameBits(
      network,
      {.image = {6, 7},
       .also = {"merge_optimizer"},
       .fetches = {"fc_0.w_0_ema_0", "fc_1.w_0_ema_0", "fc_3.b_0_ema_0", "fc_2.w_0_sum_1_0",
                   "batch_norm_0.w_1_ema_0", "batch_norm_0.w_2_sum_1_0"},
       .edit = AddBothAverages});
  EXPECT_THAT(fused, ElementsAre("fused(sgd,exponential_moving_average,average_accumulates)",
                                 "fused(sgd,exponential_moving_average,average_accumulates)"));
}

TEST(FuseUpdatesPass, UpdatesByGradientsThatHaveJustBeenAddedUp) {
  const optimizer::Adam adam({.learning_rate = 0.1});
  const std::vector<std::string> fused =
      FusedToTheSameBits(InRounds(adam), {.image = kImage,
                                          .trains = false,
                                          .also = {"merge_optimizer"},
                                          .fetches = {"fc_0.w_0", "fc_0.w_0_ema_0"},
                                          .edit = AddAverage});
  EXPECT_THAT(fused, ElementsAre("fused(gradient_merge,merged_adam,exponential_moving_average)"));
}

// The norm of the whole step comes first.
TEST(FuseUpdatesPass, LeavesUpdatesAloneThatNeedNormsFirst) {
  const optimizer::Lamb lamb({.learning_rate = 0.1});
  const std::vector<std::string> fused =
      FusedToTheSameBits(InRounds(lamb), {.image = kImage,
                                          .trains = false,
                                          .also = {"merge_optimizer"},
                                          .fetches = {"fc_0.w_0", "fc_0.w_0_ema_0"},
                                          .edit = AddAverage});
  EXPECT_THAT(fused, ElementsAre("fused(lamb,exponential_moving_average)"));
}

TEST(FuseUpdatesPass, LeavesSparseGradientsAlone) {
  const auto embedding = [](const Variable& x) {
    const Variable ids =
        layers::Cast(layers::Scale(x, {.scale = 0.0f, .bias = 3.0f}), DType::kInt64);
    return layers::Embedding(ids, {.rows = 10, .width = 5, .is_sparse = true});
  };
  EXPECT_THAT(FusedToTheSameBits(
                  embedding, {.image = {4, 1}, .fetches = {"embedding_0.w_0"}, .edit = AddAverage}),
              IsEmpty());
}

TEST(FuseUpdatesPass, LeavesForcedKernelsAlone) {
  EXPECT_THAT(FusedToTheSameBits(
                  Layer, {.image = kImage, .edit = AddAverage, .kernels = {{"sgd", "plain"}}}),
              IsEmpty());
}

// ---- programs in text

Tensor Filled(const Var& var, float first) {
  Tensor tensor(Shape(var.dims), DType::kFloat32);
  for (float& value : tensor.values<float>()) value = first += 0.25f;
  if (var.dtype == DType::kFloat32) return tensor;
  Tensor converted(tensor.shape(), var.dtype);
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    const float value = tensor.data<float>()[i];
    if (var.dtype == DType::kFloat64) converted.data<double>()[i] = value;
    if (var.dtype == DType::kBool) converted.data<bool>()[i] = true;
  }
  return converted;
}

// The ops of OptimizerProgram on a scope of its own.
class TextRun {
 public:
  TextRun(const std::string& ops, std::vector<std::string> feeds, std::vector<std::string> skip)
      : program_(OptimizerProgram(ops)),
        feeds_(std::move(feeds)),
        compiled_(Compile(std::move(skip))) {}

  // Feeds lie elsewhere in each step.
  std::vector<float> Step(const std::vector<std::string>& read) {
    fed_.push_back({});
    for (const std::string& name : feeds_) {
      fed_.back().emplace_back(name, Filled(*program_->root()->GetVar(name), 1.0f * fed_.size()));
    }
    compiled_.Run(fed_.back(), {});
    std::vector<float> values;
    for (const std::string& name : read) {
      for (const float value : executor_.scope().Get(name).ToVector<float>()) {
        values.push_back(value);
      }
    }
    return values;
  }
  void Replace(const std::string& name) {
    executor_.scope().Set(name, Filled(*program_->root()->GetVar(name), 40.0f));
  }
  std::vector<std::string> Instructions() {
    const BoundProgram bound = compiled_.Bind(fed_.back(), {});
    std::vector<std::string> names;
    for (const Instruction& instruction : bound.plan().instructions) {
      names.push_back(instruction.Name());
    }
    return names;
  }

 private:
  CompiledProgram Compile(std::vector<std::string> skip) {
    for (const auto& var : program_->root()->vars()) {
      if (!var->persistable || var->dtype == DType::kBFloat16) continue;
      executor_.scope().Set(var->name, Filled(*var, 0.5f));
    }
    // The ops stay where they are, and are all there.
    skip.insert(skip.end(), {"early_update", "dead_code"});
    return executor_.Compile(*program_, {.passes = {.skip = std::move(skip)}});
  }

  std::unique_ptr<Program> program_;
  std::vector<std::string> feeds_;
  Executor executor_{Place::Cpu()};
  CompiledProgram compiled_;
  std::vector<FeedList> fed_;
};

// The instructions of a step; four steps leave the same as without the pass.
std::vector<std::string> RunToTheSameBits(const std::string& ops,
                                          const std::vector<std::string>& feeds,
                                          const std::vector<std::string>& read) {
  TextRun run(ops, feeds, {});
  TextRun plain(ops, feeds, {"fuse_updates"});
  for (int step = 0; step < 4; ++step) {
    if (step == 2) {
      run.Replace("w1");
      plain.Replace("w1");
    }
    EXPECT_EQ(run.Step(read), plain.Step(read)) << step;
  }
  return run.Instructions();
}

const char* const kSgd =
    R"({ParamOut: ["w1"]} = sgd(Param: ["w1"], Grad: ["g1"], LearningRate: ["rate"]))";

TEST(FuseUpdatesPass, ReadsFeedsWhereverTheyLie) {
  EXPECT_THAT(
      RunToTheSameBits(
          StrCat(
              kSgd,
              R"({ParamOut: ["v1"]} = sgd(Param: ["v1"], Grad: ["w1"], LearningRate: ["rate"]))"),
          {"g1"}, {"w1", "v1"}),
      ElementsAre("fused(sgd,sgd)"));
}

// What is skipped copies all of w1 to v1, and before that it must be updated.
TEST(FuseUpdatesPass, LeavesAloneWhatMayCopyParameters) {
  EXPECT_THAT(
      RunToTheSameBits(StrCat(kSgd, R"({ParamOut: ["v1"]} = sgd(Param: ["w1"], Grad: ["g1"], )"
                                    R"(LearningRate: ["rate"], SkipUpdate: ["b"]))"),
                       {"g1", "b"}, {"w1", "v1"}),
      ElementsAre("sgd", "sgd"));
}

const char* const kAverage =
    R"({AverageOut: ["v2", "v1"], DecayProductOut: ["d2", "d1"]} = exponential_moving_average()"
    R"(Param: ["w2", "w1"], Average: ["v2", "v1"], DecayProduct: ["d2", "d1"])";

TEST(FuseUpdatesPass, AveragesInTheOrderOfTheUpdate) {
  EXPECT_THAT(RunToTheSameBits(StrCat(R"({ParamOut: ["w1", "w2"]} = sgd(Param: ["w1", "w2"], )"
                                      R"(Grad: ["g1", "g2"], LearningRate: ["rate"]))",
                                      kAverage, ")"),
                               {"g1", "g2"}, {"w1", "w2", "v1", "v2"}),
              ElementsAre("fused(sgd,exponential_moving_average)"));
}

// The decay is known only behind both updates.
TEST(FuseUpdatesPass, LeavesAveragesWholeThatCanNotMove) {
  EXPECT_THAT(
      RunToTheSameBits(
          StrCat(kSgd,
                 R"({ParamOut: ["w2"]} = sgd(Param: ["w2"], Grad: ["g2"], LearningRate: ["rate"]))",
                 R"({Out: ["n1"]} = mean(X: ["w2"]))",
                 R"({Out: ["k1"]} = cast(X: ["n1"]) {in_dtype = 5, out_dtype = 3})", kAverage,
                 R"(, ThresSteps: ["k1"]))"),
          {"g1", "g2"}, {"w1", "w2", "v1", "v2"}),
      ElementsAre("sgd", "sgd", "mean", "cast", "exponential_moving_average"));
}

// ---- programs that somebody changes

// Behind the op of that type which writes the variable.
void InsertBehind(Program* program, const std::string& type, const std::string& written, Op op) {
  Block* root = program->root();
  for (size_t i = 0; i < root->ops().size(); ++i) {
    if (root->ops()[i]->type != type || root->ops()[i]->OutputNames().front() != written) continue;
    root->InsertOp(i + 1, std::move(op));
    return;
  }
  FAIL() << "no " << type << " writes " << written;
}

TEST(FuseUpdatesPass, LeavesAParameterAloneThatIsChangedInBetween) {
  const auto edit = [](Program* program) {
    AddAverage(program);
    InsertBehind(program, "sgd", "fc_0.w_0", Doubled("fc_0.w_0"));
  };
  EXPECT_THAT(
      FusedToTheSameBits(
          Layer, {.image = kImage, .fetches = {"fc_0.w_0", "fc_0.w_0_ema_0"}, .edit = edit}),
      ElementsAre("fused(sgd,exponential_moving_average)"));
}

TEST(FuseUpdatesPass, LeavesAnAverageAloneThatIsChangedInBetween) {
  const auto edit = [](Program* program) {
    AddAverage(program);
    InsertBehind(program, "sgd", "fc_0.w_0", Doubled("fc_0.w_0_ema_0"));
  };
  EXPECT_THAT(
      FusedToTheSameBits(
          Layer, {.image = kImage, .fetches = {"fc_0.w_0", "fc_0.w_0_ema_0"}, .edit = edit}),
      ElementsAre("fused(sgd,exponential_moving_average)"));
}

}  // namespace
}  // namespace skiff
