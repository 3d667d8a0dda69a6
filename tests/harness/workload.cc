#include "tests/harness/workload.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "framework/analysis/verifier.h"
#include "framework/base/error.h"

namespace skiff::harness {
namespace {

NamedTensors Snapshot(const Scope& scope) {
  NamedTensors tensors;
  for (const std::string& name : scope.Names()) tensors[name] = CopyToCpu(scope.Get(name));
  return tensors;
}

double RootMeanSquare(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

// Where both are not a number or the same infinity, there is no difference.
double Distance(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b)) ? 0 : std::abs(a - b);
}

std::string BitDifference(const Tensor& found, const Tensor& expected) {
  if (SameBits(found, expected)) return {};
  const std::string difference = FirstDifference(ToArray(found), ToArray(expected), 0);
  return difference.empty() ? "the signs of zeros or the bits of not-a-number differ" : difference;
}

std::string Difference(const Tensor& found, const Tensor& expected, double tolerance) {
  const bool comparable = found.shape() == expected.shape() && found.dtype() == expected.dtype();
  if (tolerance == 0 || !comparable) return BitDifference(found, expected);
  const std::vector<double> a = ToArray(found).values;
  const std::vector<double> b = ToArray(expected).values;
  std::vector<double> distances(a.size());
  std::vector<double> finite;
  for (size_t i = 0; i < a.size(); ++i) {
    distances[i] = Distance(a[i], b[i]);
    if (std::isfinite(b[i])) finite.push_back(b[i]);
  }
  const double distance = RootMeanSquare(distances);
  const double size = std::max(RootMeanSquare(finite), kSmallestTensorSize);
  if (distance <= tolerance * size) return {};
  const auto worst = std::max_element(distances.begin(), distances.end()) - distances.begin();
  const auto i = static_cast<size_t>(worst);
  return StrCat("differs by ", distance / size, " of its size ", size, ", more than ", tolerance,
                "; most at index ", IndexName(found.shape(), worst), ": found ", a[i],
                ", expected ", b[i]);
}

class Comparison {
 public:
  explicit Comparison(double tolerance) : tolerance_(tolerance) {}

  void CompareRun(size_t index, const FetchList& names, const WorkloadTrace::Run& expected,
                  const WorkloadTrace::Run& found) {
    for (size_t i = 0; i < names.size(); ++i) {
      Compare(StrCat("run ", index, ": fetch ", names[i]), found.fetches[i], expected.fetches[i]);
    }
    for (const auto& [name, tensor] : expected.after) {
      const std::string what = StrCat("run ", index, ": in the scope ", name);
      const auto it = found.after.find(name);
      if (it == found.after.end()) {
        differences.push_back(what + ": is missing");
      } else {
        Compare(what, it->second, tensor);
      }
    }
  }

  std::vector<std::string> differences;

 private:
  void Compare(const std::string& what, const Tensor& found, const Tensor& expected) {
    const std::string difference = Difference(found, expected, tolerance_);
    if (!difference.empty()) differences.push_back(what + ": " + difference);
  }

  const double tolerance_;
};

}  // namespace

WorkloadTrace RunWorkload(const Workload& workload, const CompileOptions& options,
                          const WorkloadTrace* restart) {
  Executor executor(Place::Cpu());
  for (const auto& [name, tensor] : workload.initial) executor.scope().Assign(name, tensor);
  if (workload.startup != nullptr) executor.Run(*workload.startup);
  std::vector<CompiledProgram> compiled;
  for (const auto& program : workload.programs) {
    compiled.push_back(executor.Compile(*program, options));
    CheckProgram(DefaultOpRegistry(), compiled.back().program());
  }
  WorkloadTrace trace;
  for (size_t i = 0; i < workload.runs.size(); ++i) {
    const WorkloadRun& run = workload.runs[i];
    if (restart != nullptr) {
      for (const auto& [name, tensor] : restart->runs[i].before) {
        executor.scope().Assign(name, tensor);
      }
    }
    WorkloadTrace::Run& shown = trace.runs.emplace_back();
    shown.before = Snapshot(executor.scope());
    shown.fetches = compiled[run.program].Run(run.feeds, run.fetches);
    shown.after = Snapshot(executor.scope());
  }
  return trace;
}

std::vector<std::string> TraceDifferences(const Workload& workload, const WorkloadTrace& expected,
                                          const WorkloadTrace& found, double tolerance) {
  Comparison comparison(tolerance);
  for (size_t i = 0; i < workload.runs.size(); ++i) {
    comparison.CompareRun(i, workload.runs[i].fetches, expected.runs[i], found.runs[i]);
  }
  return comparison.differences;
}

}  // namespace skiff::harness
