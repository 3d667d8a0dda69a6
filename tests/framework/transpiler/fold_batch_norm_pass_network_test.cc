#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "framework/builder/activation.h"
#include "framework/builder/nn.h"
#include "framework/builder/variable_operators.h"
#include "framework/transpiler/fold_batch_norm_pass.h"
#include "tests/framework/transpiler/bound_network.h"

namespace skiff {
namespace {

Variable Conv(const Variable& x, const std::string& data_format = "NCHW") {
  return layers::Conv2d(
      x, {.filters = 3, .kernel = 3, .padding = 1, .bias_attr = false, .data_format = data_format});
}

Variable NormRelu(const Variable& x) { return layers::Relu(layers::BatchNorm(Conv(x))); }

// Sets is_test of every batch norm, as a clone for inference does.
void ForInference(Program* program) {
  for (const auto& op : program->root()->ops()) {
    if (op->type == "batch_norm") op->SetAttr("is_test", true);
  }
}

BoundNetwork Inference(const std::function<Variable(const Variable&)>& network,
                       const BoundNetwork::Options& options = {}) {
  BoundNetwork::Options with_edit = options;
  with_edit.trains = false;
  with_edit.edit = [edit = options.edit](Program* program) {
    ForInference(program);
    if (edit) edit(program);
  };
  return BoundNetwork(network, with_edit);
}

void ExpectFolded(const BoundNetwork& network, int64_t count) {
  EXPECT_EQ(network.Count("conv2d_batch_norm_act"), count);
}

TEST(FoldBatchNormPass, FoldsANormWithWhatFollowsIt) {
  const BoundNetwork network = Inference(NormRelu);
  ExpectFolded(network, 1);
  for (const char* gone : {"conv2d", "batch_norm", "batch_norm_act", "relu"}) {
    EXPECT_EQ(network.Count(gone), 0) << gone;
  }
  const BoundNetwork bare = Inference([](const Variable& x) { return layers::BatchNorm(Conv(x)); });
  ExpectFolded(bare, 1);
}

TEST(FoldBatchNormPass, FoldsBothBranchesOfAResidualBlock) {
  const BoundNetwork network = Inference([](const Variable& x) {
    return layers::Relu(layers::BatchNorm(Conv(x)) + layers::BatchNorm(Conv(x)));
  });
  ExpectFolded(network, 2);
  EXPECT_EQ(network.Count("elementwise_add"), 0);
}

// The filters and lines of the new op are derived once, whatever the number of steps.
TEST(FoldBatchNormPass, KeepsTheFoldedFilters) {
  EXPECT_GT(Inference(NormRelu).statistics().derived_bytes, 0);
}

TEST(FoldBatchNormPass, LeavesANormOfTheBatch) {
  ExpectFolded(BoundNetwork(NormRelu, {.trains = false}), 0);
  ExpectFolded(BoundNetwork(NormRelu), 0);
}

TEST(FoldBatchNormPass, LeavesTrainableStatistics) {
  const auto trainable = [](Program* program) {
    for (const auto& op : program->root()->ops()) {
      if (op->type == "batch_norm") op->SetAttr("trainable_statistics", true);
    }
  };
  ExpectFolded(Inference(NormRelu, {.edit = trainable}), 0);
}

// An optimizer changes the filters in every step, with statistics that stay.
TEST(FoldBatchNormPass, LeavesFiltersThatAreTrained) {
  const auto fixed = [](const Variable& x) {
    return layers::Relu(layers::BatchNorm(Conv(x), {.use_global_stats = true}));
  };
  ExpectFolded(BoundNetwork(fixed), 0);
  ExpectFolded(BoundNetwork(fixed, {.trains = false}), 1);
}

TEST(FoldBatchNormPass, LeavesAConvolutionThatOthersReadOrFetch) {
  ExpectFolded(Inference([](const Variable& x) {
                 const Variable conv = Conv(x);
                 return layers::BatchNorm(conv) + layers::Tanh(conv);
               }),
               0);
  std::string name;
  const auto network = [&](const Variable& x) {
    const Variable conv = Conv(x);
    name = conv.name();
    return layers::BatchNorm(conv);
  };
  const BoundNetwork first = Inference(network);
  ExpectFolded(first, 1);
  ExpectFolded(Inference(network, {.fetches = {name}}), 0);
}

// One that is fetched is that of the scope, which the norm doesn't change.
TEST(FoldBatchNormPass, LeavesARunningMeanThatIsRenamed) {
  const auto of_norm = [](Program* program) {
    for (const auto& op : program->root()->ops()) {
      if (op->type == "batch_norm") return op.get();
    }
    return static_cast<Op*>(nullptr);
  };
  std::string mean;
  const BoundNetwork first = Inference(
      NormRelu, {.edit = [&](Program* program) { mean = of_norm(program)->Output("MeanOut")[0]; }});
  ExpectFolded(first, 1);
  ExpectFolded(Inference(NormRelu, {.fetches = {mean}}), 1);
  const auto rename = [&](Program* program) {
    Op* norm = of_norm(program);
    Var other = *program->root()->FindVar(norm->Output("VarianceOut")[0]);
    other.name = "other_mean";
    program->root()->CreateVar(other);
    norm->SetOutput("MeanOut", {"other_mean"});
  };
  ExpectFolded(Inference(NormRelu, {.edit = rename}), 0);
}

TEST(FoldBatchNormPass, LeavesFiltersThatAreComputed) {
  const auto double_filter = [](Program* program) {
    Block* root = program->root();
    for (size_t i = 0; i < root->ops().size(); ++i) {
      if (root->ops()[i]->type != "conv2d") continue;
      const std::string filter = root->ops()[i]->Input("Filter")[0];
      Op op("scale");
      op.SetInput("X", {filter}).SetOutput("Out", {filter}).SetAttr("scale", 2.0f);
      root->InsertOp(i, op);
      return;
    }
  };
  ExpectFolded(Inference(NormRelu, {.edit = double_filter}), 0);
}

TEST(FoldBatchNormPass, LeavesADifferentPlaceOfTheChannels) {
  const auto mixed = [](const Variable& x) {
    return layers::BatchNorm(Conv(x, "NHWC"), {.data_layout = "NCHW"});
  };
  ExpectFolded(Inference(mixed, {.image = {2, 3, 3, 3}}), 0);
}

TEST(FoldBatchNormPass, LeavesOpsWhoseKernelIsForced) {
  ExpectFolded(Inference(NormRelu, {.kernels = {{"conv2d", "plain"}}}), 0);
}

}  // namespace
}  // namespace skiff
