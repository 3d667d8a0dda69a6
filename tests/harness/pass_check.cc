#include "tests/harness/pass_check.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "framework/base/error.h"

namespace skiff::harness {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::count(names.begin(), names.end(), name) > 0;
}

std::vector<std::string> Joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<std::string> AllPasses() { return Joined(ProgramPassNames(), PlanPassNames()); }

std::vector<std::string> DefaultPasses() {
  return Joined(DefaultProgramPasses(), DefaultPlanPasses());
}

double ToleranceOf(const std::string& pass) {
  return Contains(ProgramPassNames(), pass) ? MakeProgramPass(pass)->tolerance()
                                            : MakePlanPass(pass)->tolerance();
}

PassChoice Choose(std::string name, const std::vector<std::string>& passes) {
  PassChoice choice{.name = std::move(name), .options = {}};
  for (const std::string& pass : AllPasses()) {
    if (!Contains(passes, pass)) {
      choice.options.skip.push_back(pass);
      continue;
    }
    choice.options.also.push_back(pass);
    choice.tolerance += ToleranceOf(pass);
  }
  return choice;
}

}  // namespace

PassChoice NoPasses() { return Choose("none", {}); }

std::vector<PassChoice> PassChoices() {
  std::vector<PassChoice> choices;
  for (const std::string& pass : AllPasses()) choices.push_back(Choose("alone_" + pass, {pass}));
  const std::vector<std::string> defaults = DefaultPasses();
  choices.push_back(Choose("default", defaults));
  for (const std::string& pass : AllPasses()) {
    std::vector<std::string> others = defaults;
    if (Contains(defaults, pass)) {
      std::erase(others, pass);
      choices.push_back(Choose("without_" + pass, others));
    } else {
      others.push_back(pass);
      choices.push_back(Choose("with_" + pass, others));
    }
  }
  return choices;
}

PassChoice OnlyPass(std::shared_ptr<const ProgramPass> pass) {
  PassChoice choice = NoPasses();
  choice.name = "own_" + std::string(pass->name());
  choice.tolerance = pass->tolerance();
  choice.options.program_passes = {std::move(pass)};
  return choice;
}

PassChoice OnlyPass(std::shared_ptr<const PlanPass> pass) {
  PassChoice choice = NoPasses();
  choice.name = "own_" + std::string(pass->name());
  choice.tolerance = pass->tolerance();
  choice.options.plan_passes = {std::move(pass)};
  return choice;
}

std::vector<std::string> PassFaults(const Workload& workload, const WorkloadTrace& without_passes,
                                    const PassChoice& choice) {
  try {
    const WorkloadTrace found = RunWorkload(workload, {.passes = choice.options},
                                            choice.tolerance > 0 ? &without_passes : nullptr);
    return TraceDifferences(workload, without_passes, found, choice.tolerance);
  } catch (const std::exception& error) {
    return {StrCat("threw: ", error.what())};
  }
}

}  // namespace skiff::harness
