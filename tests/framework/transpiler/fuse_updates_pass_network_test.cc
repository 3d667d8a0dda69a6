#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/exponential_moving_average.h"
#include "framework/builder/optimizer/lamb.h"
#include "framework/builder/optimizer/model_average.h"
#include "framework/builder/tensor.h"
#include "tests/framework/transpiler/bound_network.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Weights of more elements than a block, and no multiple of a vector, and a bias.
Variable Layer(const Variable& x) { return layers::Fc(x, 67, {.act = "tanh"}); }
const Shape kImage = {4, 101};

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
