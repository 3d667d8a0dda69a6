#include "tests/harness/workload.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

#include "framework/analysis/verifier.h"
#include "framework/analysis/verify_plan.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/plan/plan_text.h"
#include "framework/transpiler/pass.h"

namespace skiff::harness {
namespace {

// Returns copies of the scope's tensors. Those that are unchanged since `before` share its copy.
NamedTensors Snapshot(const Scope& scope, const NamedTensors& before) {
  NamedTensors tensors;
  for (const std::string& name : scope.Names()) {
    const Tensor& held = scope.Get(name);
    const Tensor tensor = held.place().is_cpu() ? held : CopyToCpu(held);
    const auto it = before.find(name);
    const bool unchanged = it != before.end() && SameBits(it->second, tensor);
    tensors[name] = unchanged ? it->second : CopyToCpu(tensor);
  }
  return tensors;
}

// Of term(i) for all i below `count`, or of those that are finite.
template <typename Term>
double RootMeanSquare(size_t count, bool finite_only, const Term& term) {
  double sum = 0;
  size_t added = 0;
  for (size_t i = 0; i < count; ++i) {
    const double value = term(i);
    if (finite_only && !std::isfinite(value)) continue;
    sum += value * value;
    ++added;
  }
  return added == 0 ? 0 : std::sqrt(sum / static_cast<double>(added));
}

// Returns |a - b|; 0 if both are NaN or the same infinity.
double Distance(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) ? 0 : std::abs(a - b);
}

std::string BitDifference(const Tensor& found, const Tensor& expected) {
  if (SameBits(found, expected)) return {};
  const std::string difference = FirstDifference(ToArray(found), ToArray(expected), 0);
  return difference.empty() ? "the signs of zeros or the bits of not-a-number differ" : difference;
}

double SizeOf(const std::vector<double>& values) {
  return RootMeanSquare(values.size(), true, [&](size_t i) { return values[i]; });
}

// `largest_of_kind` returns the size of the largest tensor of the same kind.
template <typename LargestOfKind>
std::string Difference(const Tensor& found, const Tensor& expected, double tolerance,
                       const LargestOfKind& largest_of_kind) {
  const bool comparable = found.shape() == expected.shape() && found.dtype() == expected.dtype();
  if (tolerance == 0 || !comparable) return BitDifference(found, expected);
  if (SameBits(found, expected)) return {};
  const std::vector<double> a = ToArray(found).values;
  const std::vector<double> b = ToArray(expected).values;
  const double distance =
      RootMeanSquare(a.size(), false, [&](size_t i) { return Distance(a[i], b[i]); });
  double size = std::max(SizeOf(b), kSmallestTensorSize);
  if (distance <= tolerance * size) return {};
  size = std::max(size, kSmallestGradientSize * largest_of_kind());
  if (distance <= tolerance * size) return {};
  std::vector<double> distances(a.size());
  std::ranges::transform(a, b, distances.begin(), Distance);
  // A NaN compares as neither less nor more, and is worst of all.
  const auto nan = std::ranges::find_if(distances, [](double x) { return std::isnan(x); });
  const auto worst =
      (nan != distances.end() ? nan : std::ranges::max_element(distances)) - distances.begin();
  const auto i = static_cast<size_t>(worst);
  return StrCat("differs by ", distance / size, " of its size ", size, ", more than ", tolerance,
                "; most at index ", IndexName(found.shape(), worst), ": found ", a[i],
                ", expected ", b[i]);
}

// The gradients of a run and what its optimizer collects of them, in kinds that are comparable:
// gradients, velocities, and so on.
class GradientKinds {
 public:
  // All must outlive it.
  GradientKinds(const Program& program, const FetchList& fetches, const RunTrace& trace)
      : fetches_(fetches), trace_(trace) {
    for (const auto& op : program.root()->ops()) {
      if ((op->role() & kRoleOptimize) != 0 && !op->Input("Param").empty()) AddStates(*op);
    }
  }

  // Returns the size of the largest tensor of the kind of `name`, or 0 if it is of none.
  double LargestOf(const std::string& name) const {
    const std::string kind = KindOf(name);
    double largest = 0;
    const auto measure = [&](const std::string& other, const Tensor& tensor) {
      if (!kind.empty() && KindOf(other) == kind)
        largest = std::max(largest, SizeOf(ToArray(tensor).values));
    };
    for (size_t i = 0; i < fetches_.size(); ++i) measure(fetches_[i], trace_.fetches[i]);
    for (const auto& [other, tensor] : trace_.after) measure(other, tensor);
    return largest;
  }

 private:
  void AddStates(const Op& op) {
    for (const SlotArguments& slot : op.inputs) {
      if (slot.slot == "Param" || slot.slot == "LearningRate") continue;
      for (const std::string& name : slot.arguments) kinds_[name] = slot.slot;
    }
  }

  // Returns "" for anything else.
  std::string KindOf(const std::string& name) const {
    if (name.ends_with(kGradSuffix)) return "Grad";
    const auto kind = kinds_.find(name);
    return kind == kinds_.end() ? "" : kind->second;
  }

  const FetchList& fetches_;
  const RunTrace& trace_;
  std::map<std::string, std::string> kinds_;
};

// Throws an Error unless the text of a plan reads back as the same plan.
void CheckText(const OpRegistry& registry, const Plan& plan) {
  const std::string text = PrintPlan(plan);
  const std::string again = PrintPlan(ParsePlan(registry, text));
  if (again != text) {
    Throw(ErrorCode::kInvalidArgument, "the text of a plan reads back as another one:\n", text,
          "\nreads back as\n", again);
  }
}

// Returns whether the text of the next plan is checked. A test of random programs makes hundreds of
// thousands of plans, most of them much alike, and would spend a sixth of its time on texts.
bool ChecksText() {
  constexpr int64_t kAll = 500;
  // Shares no factor with the numbers of options that tests try for a program, so that each gets
  // its turn.
  constexpr int64_t kOneOf = 7;
  static int64_t plans = 0;
  return plans++ < kAll || plans % kOneOf == 0;
}

// Verifies the plan after all other passes, and that its text can be read back; the executor does
// the former only in debug builds.
class VerifyPass final : public PlanPass {
 public:
  std::string_view name() const override { return "verify"; }
  PassReport Apply(const PassContext& context, Plan* plan) const override {
    CheckPlan(*plan);
    // The text of a plan has those of its bodies.
    if (!context.is_body && ChecksText()) CheckText(context.registry, *plan);
    return {.pass = {}, .changes = 0, .summary = "sound"};
  }
};

}  // namespace

WorkloadRunner::WorkloadRunner(const Workload& workload, const CompileOptions& options,
                               const WorkloadPlace& where)
    : workload_(workload), executor_(where.place, nullptr, where.registry) {
  CompileOptions verified = options;
  verified.passes.plan_passes.push_back(std::make_shared<VerifyPass>());
  for (const auto& [name, tensor] : workload.initial) executor_.scope().Assign(name, tensor);
  if (workload.startup != nullptr) executor_.Run(*workload.startup);
  for (const auto& program : workload.programs) {
    programs_.push_back(executor_.Compile(*program, verified));
    CheckProgram(DefaultOpRegistry(), programs_.back().program());
  }
  state_ = Snapshot(executor_.scope(), {});
}

RunTrace WorkloadRunner::Next(const NamedTensors* start) {
  const WorkloadRun& run = workload_.runs.at(runs_++);
  if (start != nullptr) {
    state_ = *start;
    for (const auto& [name, tensor] : state_) executor_.scope().Assign(name, tensor);
  }
  RunTrace trace;
  trace.before = state_;
  trace.fetches = programs_[run.program].Run(run.feeds, run.fetches);
  for (Tensor& fetch : trace.fetches) {
    // Without the undefined values of unused rows.
    if (fetch.is_selected_rows()) fetch = ToPlain(fetch);
  }
  trace.after = state_ = Snapshot(executor_.scope(), trace.before);
  return trace;
}

std::vector<RunTrace> RunWorkload(const Workload& workload, const CompileOptions& options,
                                  const WorkloadPlace& where) {
  WorkloadRunner runner(workload, options, where);
  std::vector<RunTrace> traces;
  for (size_t i = 0; i < workload.runs.size(); ++i) traces.push_back(runner.Next());
  return traces;
}

std::vector<std::string> RunDifferences(const Workload& workload, size_t index,
                                        const RunTrace& expected, const RunTrace& found,
                                        double tolerance) {
  std::vector<std::string> differences;
  const auto& [program, feeds, fetches] = workload.runs[index];
  const GradientKinds kinds(*workload.programs[program], fetches, expected);
  const auto compare = [&](const char* where, const std::string& name, const Tensor& a,
                           const Tensor& b) {
    const std::string difference =
        Difference(a, b, tolerance, [&] { return kinds.LargestOf(name); });
    if (!difference.empty()) {
      differences.push_back(StrCat("run ", index, ": ", where, " ", name, ": ", difference));
    }
  };
  for (size_t i = 0; i < fetches.size(); ++i) {
    compare("fetch", fetches[i], found.fetches[i], expected.fetches[i]);
  }
  for (const auto& [name, tensor] : expected.after) {
    const auto it = found.after.find(name);
    if (it == found.after.end()) {
      differences.push_back(StrCat("run ", index, ": in the scope ", name, ": is missing"));
    } else {
      compare("in the scope", name, it->second, tensor);
    }
  }
  return differences;
}

std::vector<std::string> TraceDifferences(const Workload& workload,
                                          const std::vector<RunTrace>& expected,
                                          const std::vector<RunTrace>& found, double tolerance) {
  std::vector<std::string> differences;
  for (size_t i = 0; i < workload.runs.size(); ++i) {
    std::ranges::copy(RunDifferences(workload, i, expected[i], found[i], tolerance),
                      std::back_inserter(differences));
  }
  return differences;
}

}  // namespace skiff::harness
