#include "tests/harness/sgd_training.h"

#include <cstdint>

#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "tests/harness/array_tensor.h"

namespace skiff::harness {

Tensor SmallNumbers(const Shape& shape, int seed, DType dtype) {
  std::vector<double> numbers;
  uint32_t state = static_cast<uint32_t>(seed) * 2654435761u + 12345u;
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    state = state * 1664525u + 1013904223u;
    numbers.push_back(static_cast<double>(state >> 8) * 0x1p-23 - 1.0);
  }
  return Cast(Tensor::FromValues<double>(shape, numbers), dtype);
}

std::vector<double> TrainBySgd(const std::function<Variable()>& build,
                               const std::vector<FeedList>& batches, CompileOptions options,
                               double learning_rate) {
  Program main, startup;
  main.seed = startup.seed = 7;
  Variable loss;
  {
    const ProgramGuard guard(&main, &startup);
    loss = build();
    optimizer::Sgd({.learning_rate = learning_rate}).Minimize(loss);
  }
  options.memory.poison_dead_memory = true;
  Executor executor(Place::Cpu());
  executor.Run(startup);
  CompiledProgram step = executor.Compile(main, options);
  std::vector<double> values;
  for (const FeedList& feeds : batches) {
    values.push_back(Cast(step.Run(feeds, {loss})[0], DType::kFloat64).Item<double>());
  }
  for (const auto& var : main.root()->vars()) {
    if (!var->is_parameter) continue;
    const Tensor parameter = Cast(executor.scope().Get(var->name), DType::kFloat64);
    for (const double value : parameter.ToVector<double>()) values.push_back(value);
  }
  return values;
}

}  // namespace skiff::harness
