#include "framework/builder/optimizer/exponential_moving_average.h"

#include <set>
#include <utility>

#include "framework/builder/current_block.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/optimizer/averaged.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/op_role.h"
#include "framework/op/host_slots.h"

namespace skiff::optimizer {
namespace {

constexpr const char* kType = "exponential_moving_average";

void CheckOptions(const ExponentialMovingAverageOptions& options,
                  const std::source_location& site) {
  const LayerCall call(kType, kType, site);
  call.Enforce(options.decay >= 0.0f && options.decay < 1.0f, "decay = ", options.decay,
               ", expected one in [0, 1)");
  if (!options.thres_steps.defined()) return;
  call.CheckedName(options.thres_steps);
  const Var& steps = options.thres_steps.var();
  call.Enforce(steps.dtype == DType::kInt64 && steps.dims == std::vector<int64_t>{1},
               "thres_steps \"", steps.name, "\" is ", steps.dtype, " [", Join(steps.dims, ", "),
               "], expected int64 [1]");
}

}  // namespace

ExponentialMovingAverage::ExponentialMovingAverage(const ExponentialMovingAverageOptions& options,
                                                   std::source_location site)
    : ParameterAverage(kType, options.averaged, site) {
  CheckOptions(options, site);
  std::set<DType> dtypes;
  for (const auto& [var, weights] : vars()) {
    // One op averages all variables of a dtype, so that a step costs no op per parameter.
    dtypes.insert(weights.dtype);
    states_.push_back(
        {.average = NewState(var, "ema", var.dims, weights.dtype, 0.0, site),
         .decay_product = NewState(var, "ema_decay_product", {1}, DType::kFloat64, 1.0, site)});
  }
  for (const DType dtype : dtypes) AppendUpdate(dtype, options, site);
}

void ExponentialMovingAverage::AppendUpdate(DType dtype,
                                            const ExponentialMovingAverageOptions& options,
                                            const std::source_location& site) {
  std::vector<std::string> params, averages, products;
  for (size_t i = 0; i < vars().size(); ++i) {
    const Var& weights = vars()[i].weights;
    if (weights.dtype != dtype) continue;
    params.push_back(weights.name);
    averages.push_back(states_[i].average);
    products.push_back(states_[i].decay_product);
  }
  Op op("exponential_moving_average");
  op.SetInput("Param", params).SetInput("Average", averages).SetInput("DecayProduct", products);
  if (options.thres_steps.defined()) op.SetInput("ThresSteps", {options.thres_steps.name()});
  op.SetOutput("AverageOut", averages).SetOutput("DecayProductOut", products);
  ConnectSkipUpdate(&op);
  if (options.on_host) op.SetAttr(kOnHostAttr, true);
  op.SetAttr("decay", options.decay);
  const OpRoleGuard role(kRoleOptimize);
  LayerCall(kType, kType, site).Append(std::move(op));
}

bool ExponentialMovingAverage::HasValues(const Scope& scope, size_t i) const {
  // The product of no decays is 1; the first update makes it smaller.
  return CopyToCpu(scope.Get(states_[i].decay_product)).Item<double>() < 1.0;
}

Variable ExponentialMovingAverage::AppendAverage(size_t i) const {
  const Var& var = vars()[i].weights;
  // The average starts at 0, so the weights of all values add up to 1 minus the product of the
  // decays (the bias correction of Kingma and Ba 2015, section 3).
  const Variable weights = 1.0 - State(states_[i].decay_product, {1}, DType::kFloat64);
  return State(states_[i].average, var.dims, var.dtype) / weights;
}

}  // namespace skiff::optimizer
