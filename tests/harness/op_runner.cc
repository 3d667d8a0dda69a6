#include "tests/harness/op_runner.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <variant>

#include "framework/base/error.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/case_op.h"
#include "tests/harness/gradient_check.h"
#include "tests/harness/op_checks.h"
#include "tests/harness/prepared_op.h"
#include "tests/harness/tolerance.h"

namespace skiff::harness {
namespace {

double ToleranceOf(const OpCase& op_case, DType dtype) {
  const double own = dtype == DType::kFloat32   ? op_case.float32_tolerance
                     : dtype == DType::kFloat64 ? op_case.float64_tolerance
                                                : 0;
  // A run in integers may still have float outputs, which are float32.
  return own > 0 ? own : Tolerances::Of(IsFloat(dtype) ? dtype : DType::kFloat32);
}

bool HasDType(const OpCase& op_case, DType dtype) {
  return std::ranges::count(op_case.dtypes, dtype) > 0;
}

// Returns the inputs rounded to the dtype of the run, as kernels see them. The reference uses
// these, so that the tolerance covers only the rounding errors of the kernel.
Arrays RoundedInputs(const OpCase& op_case, const NamedTensors& tensors) {
  Arrays rounded = op_case.inputs;
  for (auto& [slot, arrays] : rounded) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      arrays[i].values = ToArray(tensors.at(VariableName(slot, i))).values;
    }
  }
  return rounded;
}

// Returns the arrays by variable. Throws Error if the reference fills a slot, or more arguments of
// one, than the case declares.
std::map<std::string, Array> ByVariable(const OpCase& op_case, const Arrays& outputs) {
  std::map<std::string, Array> named;
  for (const auto& [slot, arrays] : outputs) {
    const auto declared = std::find_if(op_case.outputs.begin(), op_case.outputs.end(),
                                       [&](const auto& output) { return output.first == slot; });
    SKIFF_ENFORCE(
        declared != op_case.outputs.end() && arrays.size() <= static_cast<size_t>(declared->second),
        kInvalidArgument, "the reference fills ", arrays.size(), " outputs of slot \"", slot,
        "\", which the case does not have");
    for (size_t i = 0; i < arrays.size(); ++i) named[VariableName(slot, i)] = arrays[i];
  }
  return named;
}

Arrays OutputArrays(const OpCase& op_case, const NamedTensors& outputs) {
  Arrays arrays;
  for (const auto& [slot, count] : op_case.outputs) {
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      arrays[slot].push_back(ToArray(outputs.at(VariableName(slot, i))));
    }
  }
  return arrays;
}

void CheckDType(const OpRegistry& registry, const OpCase& op_case, const Op& op, DType dtype,
                double tolerance, const RunnerOptions& options, CaseReport* report) {
  const NamedTensors inputs = KeepFloat32(registry.Get(op.type), op, MakeInputs(op_case, dtype));
  const Arrays rounded = RoundedInputs(op_case, inputs);
  OpCheck check{.registry = registry,
                .op = op,
                .inputs = inputs,
                .expected = {},
                .dtype = dtype,
                .tolerance = tolerance,
                .label = StrCat(CaseName(op_case), " ", dtype)};
  const bool runs = !options.choose_only;
  if (op_case.reference && runs) check.expected = ByVariable(op_case, op_case.reference(rounded));
  CheckOpEverywhere(check, options, report);
  if (!op_case.check || !runs) return;
  const OpContext context = ContextOf(registry.Get(op.type), op, inputs, {}, options.place);
  if (registry.FindKernel(context) == nullptr) return;
  PreparedOp prepared(registry, op, inputs, {.place = options.place});
  prepared.Load(inputs, 0xFF);
  prepared.Run();
  prepared.Wait();
  ++report->runs;
  op_case.check(rounded, OutputArrays(op_case, prepared.Outputs()));
}

// Returns the numbers of an attribute, none of one of another type.
std::vector<double> NumbersOf(const Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> std::vector<double> {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> ||
                      std::is_same_v<T, float>) {
          return {static_cast<double>(value)};
        } else if constexpr (std::is_same_v<T, std::vector<int32_t>> ||
                             std::is_same_v<T, std::vector<int64_t>> ||
                             std::is_same_v<T, std::vector<float>>) {
          return {value.begin(), value.end()};
        } else {
          return {};
        }
      },
      attribute);
}

// Returns the case with an attribute that the slot gives instead (SlotDef::attribute); nothing if
// the case doesn't set it.
std::optional<OpCase> WithInputForAttribute(const SlotDef& slot, const OpCase& op_case) {
  const auto given = op_case.attrs.find(slot.attribute);
  if (slot.attribute.empty() || given == op_case.attrs.end()) return std::nullopt;
  const std::vector<double> numbers = NumbersOf(given->second);
  // Without arguments, a list isn't connected.
  if (op_case.inputs.contains(slot.name) || (slot.duplicable && numbers.empty())) {
    return std::nullopt;
  }
  OpCase other = op_case;
  const bool is_float = std::holds_alternative<std::vector<float>>(given->second) ||
                        std::holds_alternative<float>(given->second);
  const DType ints = slot.duplicable ? DType::kInt32 : DType::kInt64;
  const DType dtype = is_float ? DType::kFloat32 : ints;
  std::vector<Array>& arguments = other.inputs[slot.name];
  if (slot.duplicable) {
    for (const double number : numbers) arguments.push_back(Values({1}, {number}, dtype));
  } else {
    arguments.push_back(Values({static_cast<int64_t>(numbers.size())}, numbers, dtype));
  }
  other.attrs.erase(slot.attribute);
  other.name += StrCat("_by_", slot.name);
  other.dtypes.resize(1);
  return other;
}

}  // namespace

CaseReport RunCase(const OpRegistry& registry, const OpCase& op_case,
                   const RunnerOptions& options) {
  CaseReport report;
  const OpDef* def = registry.Find(op_case.type);
  const bool has_variants = def != nullptr && !options.choose_only;
  for (const SlotDef& slot : has_variants ? def->inputs : std::vector<SlotDef>()) {
    const std::optional<OpCase> other = WithInputForAttribute(slot, op_case);
    if (!other) continue;
    const CaseReport found = RunCase(registry, *other, options);
    report.failures.insert(report.failures.end(), found.failures.begin(), found.failures.end());
  }
  const Op op = MakeOp(op_case);
  if (!op_case.reference && !op_case.check) {
    report.failures.push_back(CaseName(op_case) + ": the case has neither reference nor check");
  }
  const auto check = [&](DType dtype, double tolerance) {
    try {
      CheckDType(registry, op_case, op, dtype, tolerance, options, &report);
    } catch (const std::exception& error) {
      report.failures.push_back(StrCat(CaseName(op_case), " ", dtype, ": ", error.what()));
    }
  };
  for (const DType dtype : op_case.dtypes) check(dtype, ToleranceOf(op_case, dtype));
  if (HasDType(op_case, DType::kFloat32)) {
    for (const DType half : CheckedHalves(registry, op_case.type, options.place)) {
      check(half, NativeTolerance(op_case, half));
    }
  }
  if (!op_case.gradients.empty()) CheckGradients(registry, op_case, options, &report);
  return report;
}

}  // namespace skiff::harness
