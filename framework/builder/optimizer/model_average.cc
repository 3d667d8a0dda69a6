#include "framework/builder/optimizer/model_average.h"

#include <utility>

#include "framework/builder/current_block.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/math.h"
#include "framework/builder/optimizer/averaged.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/op_role.h"
#include "framework/op/host_slots.h"

namespace skiff::optimizer {
namespace {

constexpr const char* kType = "model_average";

void CheckOptions(const ModelAverageOptions& options, const std::source_location& site) {
  const LayerCall call(kType, kType, site);
  call.Enforce(options.average_window_rate >= 0.0f && options.average_window_rate <= 1.0f,
               "average_window_rate = ", options.average_window_rate, ", expected one in [0, 1]");
  call.Enforce(options.min_average_window >= 1, "min_average_window = ", options.min_average_window,
               ", expected at least 1");
  call.Enforce(options.min_average_window <= options.max_average_window,
               "min_average_window = ", options.min_average_window,
               " is above max_average_window = ", options.max_average_window);
  call.Enforce(options.max_num_accumulates >= 1,
               "max_num_accumulates = ", options.max_num_accumulates, ", expected at least 1");
}

int64_t CountIn(const Scope& scope, const std::string& name) {
  return CopyToCpu(scope.Get(name)).Item<int64_t>();
}

}  // namespace

ModelAverage::ModelAverage(const ModelAverageOptions& options, std::source_location site)
    : ParameterAverage(kType, options.averaged, site) {
  CheckOptions(options, site);
  const OpRoleGuard role(kRoleOptimize);
  for (const Averaged& averaged : vars()) AppendAccumulation(averaged, options, site);
}

void ModelAverage::AppendAccumulation(const Averaged& averaged, const ModelAverageOptions& options,
                                      const std::source_location& site) {
  const auto& [var, weights] = averaged;
  const LayerCall call(kType, kType, site);
  Op op("average_accumulates");
  op.SetInput("param", {weights.name});
  const auto add = [&, &var = var](const std::string& kind, const std::vector<int64_t>& dims,
                                   DType dtype) {
    const std::string name = NewState(var, kind, dims, dtype, 0.0, site);
    op.SetInput("in_" + kind, {name}).SetOutput("out_" + kind, {name});
    return name;
  };
  States states;
  for (const char* kind : {"sum_1", "sum_2", "sum_3"}) {
    states.sums.push_back(add(kind, weights.dims, weights.dtype));
  }
  states.num_accumulates = add("num_accumulates", {1}, DType::kInt64);
  states.old_num_accumulates = add("old_num_accumulates", {1}, DType::kInt64);
  states.num_updates = add("num_updates", {1}, DType::kInt64);
  ConnectSkipUpdate(&op);
  if (options.on_host) op.SetAttr(kOnHostAttr, true);
  op.SetAttr("average_window", options.average_window_rate);
  op.SetAttr("min_average_window", options.min_average_window);
  op.SetAttr("max_average_window", options.max_average_window);
  // PaddlePaddle doesn't know the attribute, so it is left out where it can be.
  if (options.max_num_accumulates != ModelAverageOptions{}.max_num_accumulates) {
    op.SetAttr("max_num_accumulates", options.max_num_accumulates);
  }
  call.Append(std::move(op));
  states_.push_back(std::move(states));
}

bool ModelAverage::HasValues(const Scope& scope, size_t i) const {
  // Right after a window has ended, all values are in the old sum.
  return CountIn(scope, states_[i].num_accumulates) > 0 ||
         CountIn(scope, states_[i].old_num_accumulates) > 0;
}

Variable ModelAverage::AppendAverage(size_t i) const {
  const Var& var = vars()[i].weights;
  std::vector<Variable> sums;
  for (const std::string& name : states_[i].sums) sums.push_back(State(name, var.dims, var.dtype));
  const Variable count = layers::Sum({State(states_[i].num_accumulates, {1}, DType::kInt64),
                                      State(states_[i].old_num_accumulates, {1}, DType::kInt64)});
  return layers::Sum(sums) / count;
}

}  // namespace skiff::optimizer
