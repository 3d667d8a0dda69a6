#include "tests/framework/transpiler/model_workloads.h"

#include <memory>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/nn.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad.h"
#include "models/common/classifier_program.h"
#include "models/lenet/lenet.h"
#include "models/mlp/mlp.h"
#include "models/resnet/resnet.h"

namespace skiff::harness {
namespace {

using models::BuildLogits;
using models::OptimizerKind;

struct ModelSpec {
  std::string name;
  int32_t channels = 1;
  int32_t extent = 12;  // of the images, which are square
  BuildLogits logits;
  OptimizerKind optimizer = OptimizerKind::kMomentum;
  models::ScheduleKind schedule = models::ScheduleKind::kConstant;
};

Variable ConvNorm(const Variable& x, int64_t filters, const std::string& act) {
  const Variable y =
      layers::Conv2d(x, {.filters = filters, .kernel = 3, .padding = 1, .bias_attr = std::nullopt});
  return layers::BatchNorm(y, {.act = act});
}

// conv - pool - residual block - global pool - fc. What is squashed has no kink: a rounding error
// stays one.
BuildLogits ResidualNet(int64_t filters) {
  return [filters](const Variable& image, int64_t classes) {
    Variable x = ConvNorm(image, filters, "tanh");
    x = layers::Pool2d(x, {.kernel = 2, .type = "max", .stride = 2});
    const Variable branch = ConvNorm(ConvNorm(x, filters, "relu"), filters, "");
    x = layers::Tanh(x + branch);
    return layers::Fc(layers::Pool2d(x, {.type = "avg", .global = true}), classes);
  };
}

std::vector<ModelSpec> Specs() {
  const BuildLogits mlp = [](const Variable& image, int64_t classes) {
    return models::Mlp(image, {.hidden_units = 20, .classes = classes, .dropout = 0.3f});
  };
  const BuildLogits resnet = [](const Variable& image, int64_t classes) {
    return models::ResNet(image, {.depth = 20, .classes = classes});
  };
  return {
      {.name = "mlp_adam", .extent = 5, .logits = mlp, .optimizer = OptimizerKind::kAdam},
      {.name = "lenet_momentum", .logits = models::LeNet},
      {.name = "lenet_adam",
       .logits = models::LeNet,
       .optimizer = OptimizerKind::kAdam,
       .schedule = models::ScheduleKind::kCosine},
      {.name = "resnet20_momentum",
       .channels = 3,
       .extent = 8,
       .logits = resnet,
       .schedule = models::ScheduleKind::kStep},
      {.name = "channels_3_sgd",
       .channels = 3,
       .logits = ResidualNet(3),
       .optimizer = OptimizerKind::kSgd},
      {.name = "channels_12_adam",
       .channels = 2,
       .logits = ResidualNet(12),
       .optimizer = OptimizerKind::kAdam},
      {.name = "channels_20_momentum", .channels = 3, .logits = ResidualNet(20)},
  };
}

constexpr int32_t kClasses = 10;

FeedList Batch(const ModelSpec& spec, const models::ClassifierProgram& program, int64_t size,
               uint64_t seed) {
  const Shape images{size, spec.channels, spec.extent, spec.extent};
  return {{program.image, ToTensor(Uniform(images, seed), DType::kFloat32)},
          {program.label, ToTensor(Integers({size, 1}, seed, 0, kClasses), DType::kInt64)}};
}

// Every fifth variable that the forward part writes.
FetchList SomeActivations(const Program& program) {
  FetchList names;
  size_t count = 0;
  for (const auto& op : program.root()->ops()) {
    if (op->role() != kRoleForward) continue;
    for (const std::string& name : op->OutputNames()) {
      if (count++ % 5 == 0) names.push_back(name);
    }
  }
  return names;
}

FetchList Parameters(const Program& program, const std::string& suffix) {
  FetchList names;
  for (const auto& var : program.root()->vars()) {
    if (var->is_parameter && var->trainable) names.push_back(var->name + suffix);
  }
  return names;
}

FetchList Together(FetchList a, const FetchList& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Workload MakeWorkload(const ModelSpec& spec) {
  const models::ImageDataset shape{.name = spec.name,
                                   .channels = spec.channels,
                                   .height = spec.extent,
                                   .width = spec.extent,
                                   .classes = kClasses};
  models::ClassifierProgram program = models::BuildClassifier(
      shape, spec.logits,
      {.optimizer = spec.optimizer,
       .learning_rate = spec.optimizer == OptimizerKind::kAdam ? 1e-3f : 0.02f,
       .schedule = spec.schedule,
       .total_steps = 8,
       .warmup_steps = 2},
      11);
  Workload workload{.name = spec.name};
  workload.startup = std::move(program.startup);
  workload.programs = {std::move(program.main), std::move(program.test)};
  const Program& main = *workload.programs[0];
  const FetchList loss = {program.loss};
  const FetchList gradients = Parameters(main, kGradSuffix);
  const auto run = [&](size_t index, int64_t batch, const FetchList& fetches) {
    const uint64_t seed = workload.runs.size() + 1;
    workload.runs.push_back({index, Batch(spec, program, batch, seed), fetches});
  };
  run(0, 6, loss);
  run(0, 6, Together(loss, gradients));
  run(1, 6, {program.loss, program.probabilities});
  run(0, 6, {});
  run(0, 6, Together(SomeActivations(main), {gradients.front(), gradients.back()}));
  run(1, 6, SomeActivations(*workload.programs[1]));
  // Another shape, and a signature that was there.
  run(0, 3, Together(loss, Parameters(main, "")));
  run(0, 6, loss);
  return workload;
}

}  // namespace

std::vector<ModelWorkload> ModelWorkloads() {
  std::vector<ModelWorkload> workloads;
  for (const ModelSpec& spec : Specs()) {
    workloads.push_back({spec.name, [spec] { return MakeWorkload(spec); }});
  }
  return workloads;
}

}  // namespace skiff::harness
