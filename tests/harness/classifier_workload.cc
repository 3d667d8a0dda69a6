#include "tests/harness/classifier_workload.h"

#include <utility>

#include "framework/ir/op_role.h"

namespace skiff::harness {
namespace {

constexpr int32_t kClasses = 10;

models::ClassifierProgram BuildPrograms(const ClassifierWorkloadOptions& options) {
  const models::ImageDataset shape{.name = options.name,
                                   .channels = options.channels,
                                   .height = options.extent,
                                   .width = options.extent,
                                   .classes = kClasses};
  const bool adam = options.optimizer == "adam";
  return models::BuildClassifier(shape, options.logits,
                                 {.optimizer = options.optimizer,
                                  .learning_rate = adam ? 1e-3f : 0.02f,
                                  .schedule = options.schedule,
                                  .total_steps = 8,
                                  .warmup_updates = 2},
                                 11);
}

// Returns every fifth variable that the forward part writes.
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

}  // namespace

Workload ClassifierWorkload(const ClassifierWorkloadOptions& options) {
  models::ClassifierProgram program = BuildPrograms(options);
  Workload workload{.name = options.name};
  workload.startup = std::move(program.startup);
  workload.programs = {std::move(program.main), std::move(program.test)};
  const auto add = [&](size_t index, int64_t batch, FetchList fetches) {
    const uint64_t seed = workload.runs.size() + 1;
    const Shape images{batch, options.channels, options.extent, options.extent};
    const Tensor image = ToTensor(Uniform(images, seed), DType::kFloat32);
    const Tensor label = ToTensor(Integers({batch, 1}, seed, 0, kClasses), DType::kInt64);
    workload.runs.push_back(
        {index, {{program.image, image}, {program.label, label}}, std::move(fetches)});
  };
  const auto train = [&](FetchList fetches) { add(0, options.batch_size, std::move(fetches)); };
  const auto evaluate = [&](FetchList fetches) { add(1, options.batch_size, std::move(fetches)); };
  const Program& main = *workload.programs[0];
  const FetchList loss = {program.loss};
  const FetchList gradients = Parameters(main, kGradSuffix);
  train(loss);
  evaluate({program.loss, program.probabilities});
  train(Together(loss, gradients));
  if (options.brief) return workload;
  train({});
  train(Together(SomeActivations(main), {gradients.front(), gradients.back()}));
  evaluate(SomeActivations(*workload.programs[1]));
  add(0, options.batch_size / 2, Together(loss, Parameters(main, "")));
  // The signature of the first run, whose plan is cached by now.
  train(loss);
  return workload;
}

}  // namespace skiff::harness
