#include "tests/harness/kernel_coverage.h"

#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "tests/harness/op_runner.h"

namespace skiff::harness {

std::set<std::string> KernelsOfCase(const OpRegistry& registry, const OpCase& op_case,
                                    Place place) {
  return RunCase(registry, op_case, {.place = place, .choose_only = true}).kernels;
}

namespace {

// Returns whether one of the kernels' names begins so.
bool AnyBegins(const std::set<std::string>& names, const std::string& prefix) {
  const auto it = names.lower_bound(prefix);
  return it != names.end() && it->starts_with(prefix);
}

// Returns whether `names` has the kernel "<candidate><dtype>". Float kernels count by themselves;
// for other dtypes, any of the candidate's does.
bool IsCovered(const std::set<std::string>& names, const std::string& candidate,
               const std::string& dtype) {
  const bool by_itself = dtype == DTypeName(DType::kFloat32) || dtype == DTypeName(DType::kFloat64);
  return by_itself ? names.contains(candidate + dtype) : AnyBegins(names, candidate);
}

}  // namespace

std::vector<std::string> KernelsWithoutCase(const OpRegistry& registry, const CaseList& cases,
                                            Place place) {
  std::set<std::string> run;
  for (const OpCase& op_case : cases) {
    if (!op_case.benchmark_only) run.merge(KernelsOfCase(registry, op_case, place));
  }
  std::vector<std::string> missing;
  for (const std::string& type : registry.Types()) {
    for (const KernelDef& kernel : registry.Kernels(type)) {
      if (kernel.place != place.kind || kernel.needs > UsedInstructionSet()) continue;
      const std::string candidate = StrCat(type, "/", kernel.name, "/");
      const std::string dtype = StrCat(kernel.dtype);
      if (!IsCovered(run, candidate, dtype)) missing.push_back(candidate + dtype);
    }
  }
  return missing;
}

RowKernels FindRowKernels(const OpRegistry& registry, const CaseList& cases) {
  RowKernels kernels;
  for (const OpCase& op_case : cases) {
    if (op_case.benchmark_only) continue;
    RunCase(registry, op_case, {.choose_only = true, .row_kernels = &kernels});
  }
  return kernels;
}

std::vector<std::string> RowKernelsWithoutCheck(const RowKernels& kernels) {
  std::vector<std::string> missing;
  for (const std::string& name : kernels.all) {
    const size_t dtype = name.rfind('/') + 1;
    if (!IsCovered(kernels.checked, name.substr(0, dtype), name.substr(dtype))) {
      missing.push_back(name);
    }
  }
  return missing;
}

}  // namespace skiff::harness
