#include "framework/transpiler/pass.h"

#include <algorithm>

#include "framework/base/error.h"

namespace skiff {
namespace {

template <typename Subject, typename Make>
std::vector<PassReport> RunPasses(const std::vector<std::string>& names, const Make& make,
                                  const OpRegistry& registry, Subject* subject,
                                  const PipelineOptions& options) {
  std::vector<PassReport> reports;
  for (const std::string& name : names) {
    if (std::ranges::count(options.skip, name) > 0) continue;
    if (options.pass_limit >= 0 && static_cast<int32_t>(reports.size()) >= options.pass_limit)
      break;
    PassReport report = make(name)->Apply(registry, subject);
    report.pass = name;
    if (options.observer) options.observer(report);
    reports.push_back(std::move(report));
  }
  return reports;
}

void CheckSkipped(const PipelineOptions& options) {
  std::vector<std::string> known = ProgramPassNames();
  std::ranges::copy(PlanPassNames(), std::back_inserter(known));
  for (const std::string& name : options.skip) {
    SKIFF_ENFORCE(std::ranges::count(known, name) > 0, kNotFound, "there is no pass \"", name,
                  "\" to skip; there are: ", Join(known, ", "));
  }
}

}  // namespace

std::vector<PassReport> RunProgramPasses(const OpRegistry& registry, Program* program,
                                         const PipelineOptions& options) {
  CheckSkipped(options);
  return RunPasses(DefaultProgramPasses(), MakeProgramPass, registry, program, options);
}

std::vector<PassReport> RunPlanPasses(const OpRegistry& registry, Plan* plan,
                                      const PipelineOptions& options) {
  CheckSkipped(options);
  return RunPasses(DefaultPlanPasses(), MakePlanPass, registry, plan, options);
}

}  // namespace skiff
