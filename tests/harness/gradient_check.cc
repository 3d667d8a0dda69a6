#include "tests/harness/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/op/grad.h"
#include "framework/op/grad_name.h"
#include "tests/harness/case_op.h"
#include "tests/harness/op_checks.h"
#include "tests/harness/prepared_op.h"
#include "tests/harness/tolerance.h"

namespace skiff::harness {
namespace {

// The most elements of a variable that get a difference of their own, which costs two runs of the
// op each. In a larger variable the others are covered by one difference along a direction that
// moves every element.
constexpr int64_t kMaxSingleElements = 48;

// Returns whether the outputs of a slot are part of the loss.
bool IsLossSlot(const OpDef& def, const OpCase& op_case, const std::string& slot) {
  const std::vector<std::string>& listed = op_case.loss_outputs;
  if (!listed.empty()) return std::count(listed.begin(), listed.end(), slot) > 0;
  const SlotDef* slot_def = def.FindOutput(slot);
  return slot_def != nullptr && !slot_def->intermediate;
}

std::set<std::string> LossVariables(const OpDef& def, const OpCase& op_case) {
  std::set<std::string> variables;
  for (const auto& [slot, count] : op_case.outputs) {
    for (size_t i = 0; IsLossSlot(def, op_case, slot) && i < static_cast<size_t>(count); ++i) {
      variables.insert(VariableName(slot, i));
    }
  }
  return variables;
}

NamedTensors RunOp(const OpRegistry& registry, const Op& op, const NamedTensors& inputs) {
  PreparedOp prepared(registry, op, inputs);
  prepared.Load(inputs, 0xFF);
  prepared.Run();
  return prepared.Outputs();
}

void Insert(NamedTensors* into, const NamedTensors& from) {
  for (const auto& [name, tensor] : from) (*into)[name] = tensor;
}

double& ElementOf(Tensor* tensor, int64_t i) { return tensor->data<double>()[i]; }

// Checks in two steps. The first one runs all gradient ops of the rule in float64 and compares the
// gradients of the inputs with central differences of the loss: this judges the rule and the
// formulas together. The second one runs each gradient op by itself through CheckOpEverywhere, with
// its own float64 result as the reference: this judges kernels, layouts, threads and dtypes.
class GradientChecker {
 public:
  GradientChecker(const OpRegistry& registry, const OpCase& op_case, const RunnerOptions& options,
                  CaseReport* report)
      : registry_(registry),
        case_(op_case),
        options_(options),
        report_(report),
        forward_(MakeOp(op_case)),
        wanted_(GradientVariables(op_case)) {}

  void Check() {
    RunForwardOp();
    const std::vector<Op> ops = OpsFor(wanted_);
    if (options_.place.is_cpu() && !options_.choose_only) CheckRule(ops);
    CheckGradientOps(ops);
  }

 private:
  void CheckRule(const std::vector<Op>& ops) {
    const NamedTensors all = RunChain(ops);
    for (const std::string& variable : wanted_) {
      if (!CheckPresence(all, variable)) continue;
      CheckAgainstDifferences(all, variable);
      if (wanted_.size() > 1) CheckAlone(all, variable);
    }
  }

  void Fail(const std::string& what) {
    report_->failures.push_back(StrCat(CaseName(case_), " gradient ", what));
  }

  void RunForwardOp() {
    // Values that float32 can hold, so that both dtypes see the same case.
    for (const auto& [name, tensor] : MakeInputs(case_, DType::kFloat32)) {
      inputs_[name] = IsFixed(name) ? tensor : Cast(tensor, DType::kFloat64);
    }
    ForwardRun run = RunForward(registry_, case_, forward_, inputs_);
    outputs_ = std::move(run.outputs);
    loss_ = std::move(run.loss);
    values_ = std::move(run.values);
  }

  bool IsFixed(const std::string& variable) const {
    for (const auto& [slot, arrays] : case_.inputs) {
      for (size_t i = 0; i < arrays.size(); ++i) {
        if (VariableName(slot, i) == variable) return arrays[i].fixed_dtype;
      }
    }
    return false;
  }

  std::vector<Op> OpsFor(const std::vector<std::string>& variables) const {
    std::vector<Op> ops = GradientOps(registry_, case_, forward_, [&](const std::string& name) {
      return std::count(variables.begin(), variables.end(), name) > 0;
    });
    for (size_t i = 0; i < ops.size(); ++i) {
      // In a program, a gradient op has an id of its own, too.
      if (ops[i].id < 0) ops[i].id = 100 + static_cast<int64_t>(i);
    }
    return ops;
  }

  NamedTensors RunChain(const std::vector<Op>& ops) const {
    NamedTensors values = values_;
    for (const Op& op : ops) Insert(&values, RunOp(registry_, op, values));
    return values;
  }

  bool CheckPresence(const NamedTensors& all, const std::string& variable) {
    const auto gradient = all.find(GradName(variable));
    if (gradient == all.end()) {
      Fail(StrCat("of ", variable, ": the gradient ops do not compute it"));
      return false;
    }
    const Tensor& input = inputs_.at(variable);
    const Shape shape = DenseShape(gradient->second.shape(), gradient->second.layout());
    if (shape == input.shape() && gradient->second.dtype() == input.dtype()) return true;
    Fail(StrCat("of ", variable, ": found ", gradient->second.dtype(), " ", shape, ", expected ",
                input.dtype(), " ", input.shape()));
    return false;
  }

  void CheckAlone(const NamedTensors& all, const std::string& variable) {
    try {
      const NamedTensors alone = RunChain(OpsFor({variable}));
      const auto found = alone.find(GradName(variable));
      if (found == alone.end()) {
        Fail(StrCat("of ", variable, " alone: the gradient ops do not compute it"));
        return;
      }
      const std::string difference = FirstDifference(
          ToArray(found->second), ToArray(all.at(GradName(variable))), Tolerances::kFloat64);
      if (!difference.empty()) {
        Fail(StrCat("of ", variable, " alone differs from all together: ", difference));
      }
    } catch (const std::exception& error) {
      Fail(StrCat("of ", variable, " alone threw: ", error.what()));
    }
  }

  // Returns half of the difference of the loss between the input moved by +steps and by -steps.
  double Difference(PreparedOp* prepared, const std::string& variable,
                    const std::vector<std::pair<int64_t, double>>& steps) {
    const auto run = [&](double sign) {
      NamedTensors moved = inputs_;
      moved[variable] = CopyToCpu(inputs_.at(variable));
      for (const auto& [i, step] : steps) ElementOf(&moved[variable], i) += sign * step;
      prepared->Load(moved, 0xFF);
      prepared->Run();
      ++report_->runs;
      return prepared->Outputs();
    };
    const NamedTensors above = run(1.0);
    const NamedTensors below = run(-1.0);
    double sum = 0;
    for (const std::string& name : loss_) {
      // Element by element: the difference of two sums would lose digits.
      const std::vector<double> a = ToArray(above.at(name)).values;
      const std::vector<double> b = ToArray(below.at(name)).values;
      const std::vector<double> weights = ToArray(values_.at(GradName(name))).values;
      for (size_t i = 0; i < a.size(); ++i) sum += weights[i] * (a[i] - b[i]);
    }
    return sum / 2;
  }

  void CheckAgainstDifferences(const NamedTensors& all, const std::string& variable) {
    const Tensor& input = inputs_.at(variable);
    SKIFF_ENFORCE(input.dtype() == DType::kFloat64, kInvalidArgument, "the gradient of ", variable,
                  " is to be checked, but its dtype is fixed to ", input.dtype());
    const Array found_array = ToArray(all.at(GradName(variable)));
    const std::vector<double> gradient =
        found_array.is_selected_rows() ? Dense(found_array).values : found_array.values;
    const int64_t count = input.element_count();
    if (count == 0) return;
    PreparedOp prepared(registry_, forward_, inputs_);
    double square_sum = 0;
    for (const double value : gradient) square_sum += value * value;
    const double size =
        std::max(std::sqrt(square_sum / static_cast<double>(count)), Tolerances::kFloor);
    const int64_t stride = (count + kMaxSingleElements - 1) / kMaxSingleElements;
    for (int64_t i = 0; i < count; i += stride) {
      const double step = StepAt(input, i);
      const double expected = Difference(&prepared, variable, {{i, step}}) / step;
      const double found = gradient[static_cast<size_t>(i)];
      const double bound = Tolerance() * std::max(std::abs(expected), size);
      if (std::abs(found - expected) <= bound) continue;
      Fail(StrCat("of ", variable, " float64 index ", IndexName(input.shape(), i), ": found ",
                  found, ", expected ", expected, " by central differences (tolerance ", bound,
                  ")"));
      return;
    }
    if (stride > 1) CheckDirection(&prepared, variable, gradient);
  }

  void CheckDirection(PreparedOp* prepared, const std::string& variable,
                      const std::vector<double>& gradient) {
    const Tensor& input = inputs_.at(variable);
    const Array signs = Uniform(input.shape(), 77);
    std::vector<std::pair<int64_t, double>> steps;
    double found = 0;
    double square_sum = 0;
    for (size_t i = 0; i < gradient.size(); ++i) {
      const double step = std::copysign(StepAt(input, static_cast<int64_t>(i)), signs.values[i]);
      steps.emplace_back(static_cast<int64_t>(i), step);
      found += gradient[i] * step;
      square_sum += gradient[i] * step * gradient[i] * step;
    }
    const double expected = Difference(prepared, variable, steps);
    const double bound = Tolerance() * std::max(std::sqrt(square_sum),
                                                Tolerances::kFloor * Tolerances::kDifferenceStep *
                                                    std::sqrt(gradient.size()));
    if (std::abs(found - expected) <= bound) return;
    Fail(StrCat("of ", variable, " float64 along a direction through all elements: found ", found,
                ", expected ", expected, " by central differences (tolerance ", bound, ")"));
  }

  static double StepAt(const Tensor& input, int64_t i) {
    return Tolerances::kDifferenceStep * std::max(std::abs(input.data<double>()[i]), 1.0);
  }

  double Tolerance() const {
    return case_.gradient_tolerance > 0 ? case_.gradient_tolerance : Tolerances::kCentralDifference;
  }

  void CheckGradientOps(const std::vector<Op>& ops) {
    const bool in_float32 =
        std::count(case_.dtypes.begin(), case_.dtypes.end(), DType::kFloat32) > 0;
    NamedTensors values = values_;
    NamedTensors values32 = in_float32 ? ForwardValuesInFloat32() : NamedTensors{};
    for (const Op& op : ops) {
      const NamedTensors expected = RunOp(registry_, op, values);
      CheckByItself(op, values, expected, DType::kFloat64,
                    std::max(Tolerances::kFloat64, case_.float64_tolerance));
      Insert(&values, expected);
      if (!in_float32) continue;
      const NamedTensors expected32 =
          RunOp(registry_, op, Recast(values32, DType::kFloat32, DType::kFloat64));
      CheckByItself(op, values32, expected32, DType::kFloat32,
                    std::max(Tolerances::kFloat32Gradient, case_.float32_tolerance));
      Insert(&values32, InDTypesOf(op, values32, expected32));
      for (const DType half : CheckedHalves(registry_, op.type, options_.place)) {
        CheckInHalf(op, values32, half);
      }
    }
  }

  void CheckInHalf(const Op& op, const NamedTensors& values32, DType half) {
    const NamedTensors values =
        KeepFloat32(registry_.Get(op.type), op, Recast(values32, DType::kFloat32, half));
    const NamedTensors wide =
        Recast(Recast(values, half, DType::kFloat64), DType::kFloat32, DType::kFloat64);
    CheckByItself(op, values, RunOp(registry_, op, wide), half, NativeTolerance(case_, half));
  }

  // Compares all outputs, including those that only another gradient op reads.
  void CheckByItself(const Op& op, const NamedTensors& inputs, const NamedTensors& expected,
                     DType dtype, double tolerance) {
    OpCheck check{.registry = registry_,
                  .op = op,
                  .inputs = inputs,
                  .expected = {},
                  .dtype = dtype,
                  .tolerance = tolerance,
                  .label = StrCat(CaseName(case_), " gradient op ", op.type, " ", dtype)};
    for (const auto& [name, tensor] : expected) {
      Array array = ToArray(tensor);
      // Floats follow the dtype of the run.
      array.fixed_dtype = !IsFloat(array.dtype);
      check.expected[name] = std::move(array);
    }
    CheckOpEverywhere(check, options_, report_);
  }

  // Returns `outputs` of an op, cast to the dtypes that they have when its inputs are `inputs`.
  NamedTensors InDTypesOf(const Op& op, const NamedTensors& inputs,
                          const NamedTensors& outputs) const {
    const OpDef& def = registry_.Get(op.type);
    const OpContext context = ContextOf(def, op, inputs);
    const std::vector<std::string> names = OutputOrder(def, op);
    NamedTensors cast;
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == kEmptyVarName) continue;
      cast[names[i]] = Cast(outputs.at(names[i]), context.outputs()[i].dtype);
    }
    return cast;
  }

  NamedTensors ForwardValuesInFloat32() const {
    NamedTensors values = MakeInputs(case_, DType::kFloat32);
    const NamedTensors outputs = InDTypesOf(forward_, values, outputs_);
    for (const auto& [name, tensor] : outputs) {
      values[name] = tensor;
      values[GradName(name)] = Cast(values_.at(GradName(name)), tensor.dtype());
    }
    return values;
  }

  // Returns the same tensors, those of dtype `from` that follow the dtype of the run in dtype `to`.
  NamedTensors Recast(const NamedTensors& values, DType from, DType to) const {
    NamedTensors cast;
    for (const auto& [name, tensor] : values) {
      const bool follows = tensor.dtype() == from && !IsFixed(name);
      cast[name] = follows ? Cast(tensor, to) : tensor;
    }
    return cast;
  }

  const OpRegistry& registry_;
  const OpCase& case_;
  const RunnerOptions& options_;
  CaseReport* report_;
  const Op forward_;
  const std::vector<std::string> wanted_;
  NamedTensors inputs_;
  NamedTensors outputs_;
  std::set<std::string> loss_;
  // Everything that gradient ops may read: inputs, outputs and the gradients of outputs.
  NamedTensors values_;
};

}  // namespace

std::vector<Op> GradientOps(const OpRegistry& registry, const OpCase& op_case, const Op& forward,
                            const std::function<bool(const std::string&)>& wants) {
  const OpDef& def = registry.Get(op_case.type);
  SKIFF_ENFORCE(def.grad != nullptr, kInvalidArgument, def.type,
                ": gradients are to be checked, but there is no rule: ", def.no_gradient_reason);
  return def.grad(GradContext(forward, def, wants));
}

ForwardRun RunForward(const OpRegistry& registry, const OpCase& op_case, const Op& forward,
                      const NamedTensors& inputs) {
  ForwardRun run;
  run.outputs = RunOp(registry, forward, inputs);
  for (const std::string& name : LossVariables(registry.Get(op_case.type), op_case)) {
    if (IsFloat(run.outputs.at(name).dtype())) run.loss.insert(name);
  }
  SKIFF_ENFORCE(!run.loss.empty(), kInvalidArgument,
                "gradients are wanted, but no float output can be a loss");
  run.values = inputs;
  Insert(&run.values, run.outputs);
  uint64_t seed = 1000;
  for (const auto& [name, tensor] : run.outputs) {
    Tensor gradient = ZerosLike(tensor);
    if (run.loss.count(name) > 0) {
      gradient = ToTensor(Uniform(tensor.shape(), ++seed), tensor.dtype());
    }
    run.values[GradName(name)] = gradient;
  }
  return run;
}

std::vector<std::string> GradientVariables(const OpCase& op_case) {
  std::vector<std::string> variables;
  for (const std::string& slot : op_case.gradients) {
    const auto it = op_case.inputs.find(slot);
    SKIFF_ENFORCE(it != op_case.inputs.end(), kInvalidArgument, CaseName(op_case),
                  ": the gradient of slot \"", slot, "\" is to be checked, but it has no input");
    for (size_t i = 0; i < it->second.size(); ++i) variables.push_back(VariableName(slot, i));
  }
  return variables;
}

void CheckGradients(const OpRegistry& registry, const OpCase& op_case, const RunnerOptions& options,
                    CaseReport* report) {
  try {
    GradientChecker(registry, op_case, options, report).Check();
  } catch (const std::exception& error) {
    report->failures.push_back(StrCat(CaseName(op_case), " gradient threw: ", error.what()));
  }
}

}  // namespace skiff::harness
