#include "tools/op_bench/op_timing.h"

#include <algorithm>
#include <utility>

#include "framework/base/str_cat.h"
#include "tests/harness/case_op.h"
#include "tests/harness/gradient_check.h"
#include "tests/harness/prepared_op.h"
#include "tools/benchmark/run_times.h"

namespace skiff {
namespace {

// Returns the pairs of inputs and outputs that are one variable in every program, such as Param and
// ParamOut. Timed apart, the op would write to more memory than it does in a training.
harness::VariablePairs UpdatedInPlace(const OpDef& def, const Op& op) {
  harness::VariablePairs pairs;
  for (const auto& [input, output] : def.in_place) {
    if (output != StrCat(input, "Out")) continue;
    const size_t count = std::min(op.Input(input).size(), op.Output(output).size());
    for (size_t i = 0; i < count; ++i) {
      pairs.emplace_back(op.Input(input)[i], op.Output(output)[i]);
    }
  }
  return pairs;
}

std::optional<double> FlopOf(const OpDef& def, const Op& op, const harness::NamedTensors& inputs) {
  if (!def.flop) return std::nullopt;
  return def.flop(harness::ContextOf(def, op, inputs));
}

// Times an op with its kernel prepared once, as in a plan. Stores its outputs in *outputs unless
// that is null.
OpTiming TimeOp(const OpRegistry& registry, const Op& op, const harness::NamedTensors& inputs,
                const std::string& name, const TimingOptions& options,
                harness::NamedTensors* outputs = nullptr) {
  harness::PreparedOp prepared(registry, op, inputs,
                               {.place = options.place,
                                .candidate = options.candidate,
                                .in_place = UpdatedInPlace(registry.Get(op.type), op)});
  const auto run = [&] {
    prepared.Run();
    prepared.Wait();
  };
  // Warm-up: the first run touches the outputs' memory.
  run();
  std::vector<double> seconds;
  double total = 0;
  while (total < options.least_seconds ||
         static_cast<int64_t>(seconds.size()) < options.least_runs) {
    seconds.push_back(SecondsOf(run));
    total += seconds.back();
  }
  if (outputs != nullptr) *outputs = prepared.Outputs();
  return {.type = op.type,
          .name = name,
          .candidate = prepared.candidate(),
          .runs = static_cast<int64_t>(seconds.size()),
          .median_seconds = PercentilesOf(seconds).median,
          .bytes = prepared.argument_bytes(),
          .workspace_bytes = prepared.workspace_bytes(),
          .flop = FlopOf(registry.Get(op.type), op, inputs)};
}

}  // namespace

OpTiming TimeCase(const OpRegistry& registry, const harness::OpCase& op_case,
                  const TimingOptions& options) {
  return TimeOp(registry, harness::MakeOp(op_case), harness::MakeInputs(op_case, options.dtype),
                op_case.name, options);
}

std::vector<OpTiming> TimeGradients(const OpRegistry& registry, const harness::OpCase& op_case,
                                    const TimingOptions& options) {
  const Op forward = harness::MakeOp(op_case);
  const harness::NamedTensors inputs = harness::MakeInputs(op_case, options.dtype);
  const std::vector<std::string> checked = harness::GradientVariables(op_case);
  const auto is_wanted = [&](const std::string& name) {
    return checked.empty() ? IsFloat(inputs.at(name).dtype())
                           : std::ranges::count(checked, name) > 0;
  };
  const std::vector<Op> ops = harness::GradientOps(registry, op_case, forward, is_wanted);
  harness::NamedTensors values = harness::RunForward(registry, op_case, forward, inputs).values;
  std::vector<OpTiming> timings;
  for (const Op& op : ops) {
    harness::NamedTensors outputs;
    timings.push_back(TimeOp(registry, op, values, op_case.name, options, &outputs));
    // A later op of the gradient rule may read them.
    for (auto& [name, tensor] : outputs) values[name] = std::move(tensor);
  }
  return timings;
}

}  // namespace skiff
