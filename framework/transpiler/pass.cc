// A pipeline is a list of names from default_pipelines.txt, in its order, whatever order a user
// names passes in. So any choice of passes keeps the constraints of pass_order.cc, and
// CheckPassOrder can only fail for passes of the caller's own.
#include "framework/transpiler/pass.h"

#include <algorithm>
#include <iterator>
#include <ranges>

#include "framework/analysis/verify_plan.h"
#include "framework/base/error.h"
#include "framework/transpiler/pass_order.h"

namespace skiff {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::count(names, name) > 0;
}

template <typename Kind>
using PassList = std::vector<std::shared_ptr<const Kind>>;

// Returns the passes to run: those of `all`, in that order, that are in `defaults`, asked for, or
// needed by one of these; then `own`.
template <typename Kind, typename Make>
PassList<Kind> Select(const std::vector<std::string>& all, const std::vector<std::string>& defaults,
                      const Make& make, const PassList<Kind>& own, const PipelineOptions& options) {
  std::vector<std::string> wanted = options.also;
  wanted.insert(wanted.end(), defaults.begin(), defaults.end());
  // From the last on, since a pass that is needed runs before, and may need another one.
  for (const std::string& name : std::views::reverse(all)) {
    // A pass that is skipped needs no other one.
    if (!Contains(options.skip, name) && Contains(wanted, name)) {
      wanted.emplace_back(make(name)->needs());
    }
  }
  PassList<Kind> passes;
  for (const std::string& name : all) {
    if (Contains(wanted, name) && !Contains(options.skip, name)) passes.push_back(make(name));
  }
  passes.insert(passes.end(), own.begin(), own.end());
  std::vector<std::string_view> names;
  for (const auto& pass : passes) names.push_back(pass->name());
  CheckPassOrder(names);
  return passes;
}

#ifndef NDEBUG
// The executor checks programs, since it knows whether the program was sound before the passes.
void CheckAfter(const PassReport&, const Program&) {}

void CheckAfter(const PassReport& report, const Plan& plan) {
  try {
    CheckPlan(plan);
  } catch (const Error& error) {
    throw error.WithContext("after the pass " + report.pass);
  }
}
#endif

bool IsRequired(const ProgramPass&, const Program&) { return false; }
bool IsRequired(const PlanPass& pass, const Plan& plan) { return pass.IsRequiredBy(plan); }

template <typename Kind, typename Context, typename Subject>
std::vector<PassReport> RunPasses(
    const PassList<Kind>& passes, const Context& context, Subject* subject, int32_t limit,
    const std::function<void(const PassReport&, const Subject&)>& observer) {
  std::vector<PassReport> reports;
  for (const std::shared_ptr<const Kind>& pass : passes) {
    // For bisection: with a wrong result, the smallest limit that shows it names the pass.
    const bool is_past = limit >= 0 && static_cast<int32_t>(reports.size()) >= limit;
    if (is_past && !IsRequired(*pass, *subject)) continue;
    PassReport report = pass->Apply(context, subject);
    report.pass = std::string(pass->name());
#ifndef NDEBUG
    // In debug builds after every pass, so that a broken plan is blamed on the pass that broke it
    // and not on a later one.
    CheckAfter(report, *subject);
#endif
    if (observer) observer(report, *subject);
    reports.push_back(std::move(report));
  }
  return reports;
}

void CheckNames(const PipelineOptions& options) {
  std::vector<std::string> known = ProgramPassNames();
  std::ranges::copy(PlanPassNames(), std::back_inserter(known));
  const auto check = [&](const std::vector<std::string>& names, std::string_view purpose) {
    for (const std::string& name : names) {
      SKIFF_ENFORCE(Contains(known, name), kNotFound, "there is no pass \"", name, "\" to ",
                    purpose, "; there are: ", Join(known, ", "));
    }
  };
  check(options.skip, "skip");
  check(options.also, "run as well");
}

}  // namespace

PipelineOptions ParsePasses(std::string_view text) {
  PipelineOptions options;
  if (text == "none") {
    options.skip = ProgramPassNames();
    std::ranges::copy(PlanPassNames(), std::back_inserter(options.skip));
    return options;
  }
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view entry = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    SKIFF_ENFORCE(entry.starts_with('+') || entry.starts_with('-'), kInvalidArgument, "passes \"",
                  entry,
                  "\": expected a + (to run it as well) or a - (to leave it out) and the "
                  "name of a pass, or none");
    (entry[0] == '+' ? options.also : options.skip).emplace_back(entry.substr(1));
  }
  return options;
}

std::vector<PassReport> RunProgramPasses(const ProgramPassContext& context, PlaceKind place,
                                         Program* program, const PipelineOptions& options) {
  CheckNames(options);
  return RunPasses(Select(ProgramPassNames(), DefaultProgramPasses(place), MakeProgramPass,
                          options.program_passes, options),
                   context, program, options.pass_limit, options.program_observer);
}

std::vector<PassReport> RunPlanPasses(const PassContext& context, Plan* plan,
                                      const PipelineOptions& options) {
  CheckNames(options);
  MarkNamedValues(context.memory, plan);
  PipelineOptions possible = options;
  std::erase_if(possible.skip, [&](const std::string& name) {
    return Contains(PlanPassNames(), name) && MakePlanPass(name)->IsRequiredBy(*plan);
  });
  return RunPasses(
      Select(PlanPassNames(), DefaultPlanPasses(), MakePlanPass, options.plan_passes, possible),
      context, plan, options.pass_limit, options.plan_observer);
}

}  // namespace skiff
