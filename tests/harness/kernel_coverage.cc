#include "tests/harness/kernel_coverage.h"

#include "framework/base/error.h"
#include "tests/harness/op_runner.h"

namespace skiff::harness {

std::set<std::string> KernelsOfCase(const OpRegistry& registry, const OpCase& op_case,
                                    Place place) {
  return RunCase(registry, op_case, {.place = place, .choose_only = true}).kernels;
}

std::vector<std::string> KernelsWithoutCase(const OpRegistry& registry, const CaseList& cases,
                                            Place place) {
  std::set<std::string> run;
  for (const OpCase& op_case : cases) {
    if (!op_case.benchmark_only) run.merge(KernelsOfCase(registry, op_case, place));
  }
  const auto any_begins = [&](const std::string& prefix) {
    const auto it = run.lower_bound(prefix);
    return it != run.end() && it->starts_with(prefix);
  };
  std::vector<std::string> missing;
  for (const std::string& type : registry.Types()) {
    for (const KernelDef& kernel : registry.Kernels(type)) {
      if (kernel.place != place.kind) continue;
      const std::string candidate = StrCat(type, "/", kernel.name, "/");
      const std::string name = StrCat(candidate, kernel.dtype);
      // Float kernels must run in each dtype; for the others the candidate must run in any.
      const bool by_itself = kernel.dtype == DType::kFloat32 || kernel.dtype == DType::kFloat64;
      if (!(by_itself ? run.contains(name) : any_begins(candidate))) missing.push_back(name);
    }
  }
  return missing;
}

}  // namespace skiff::harness
