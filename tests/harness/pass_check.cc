#include "tests/harness/pass_check.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "framework/base/error.h"
#include "tests/harness/emulated_device.h"

namespace skiff::harness {
namespace {

// More faults of one choice add no information.
constexpr size_t kMaxFaultsOfAChoice = 8;

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::count(names.begin(), names.end(), name) > 0;
}

std::vector<std::string> Joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<std::string> AllPasses() { return Joined(ProgramPassNames(), PlanPassNames()); }

std::vector<std::string> DefaultPasses() {
  return Joined(DefaultProgramPasses(PlaceKind::kCpu), DefaultPlanPasses());
}

double ToleranceOf(const std::string& pass) {
  return Contains(ProgramPassNames(), pass) ? MakeProgramPass(pass)->tolerance()
                                            : MakePlanPass(pass)->tolerance();
}

// Appends the first faults, after the name of what they were found in.
void AddFirst(const std::vector<std::string>& faults, const std::string& where,
              std::vector<std::string>* all) {
  for (size_t i = 0; i < std::min(faults.size(), kMaxFaultsOfAChoice); ++i) {
    all->push_back(StrCat(where, ": ", faults[i]));
  }
}

PassChoice Choose(std::string name, const std::vector<std::string>& passes) {
  PassChoice choice{.name = std::move(name), .options = {}};
  for (const std::string& pass : AllPasses()) {
    if (!Contains(passes, pass)) {
      choice.options.passes.skip.push_back(pass);
      continue;
    }
    choice.options.passes.also.push_back(pass);
    choice.tolerance += ToleranceOf(pass);
  }
  return choice;
}

std::vector<std::string> PassesOfEqualBits() {
  std::vector<std::string> passes = DefaultPasses();
  std::erase_if(passes, [](const std::string& pass) { return ToleranceOf(pass) > 0; });
  return passes;
}

}  // namespace

PassChoice NoPasses() { return Choose("none", {}); }

std::vector<PassChoice> PassChoices() {
  std::vector<PassChoice> choices;
  for (const std::string& pass : AllPasses()) choices.push_back(Choose("alone_" + pass, {pass}));
  const std::vector<std::string> defaults = DefaultPasses();
  std::vector<std::string> optional = AllPasses();
  std::erase_if(optional, [&](const std::string& pass) { return Contains(defaults, pass); });
  choices.push_back(Choose("default", defaults));
  choices.push_back(Choose("optional", optional));
  choices.push_back(Choose("all", AllPasses()));
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
  choice.options.passes.program_passes = {std::move(pass)};
  return choice;
}

PassChoice OnlyPass(std::shared_ptr<const PlanPass> pass) {
  PassChoice choice = NoPasses();
  choice.name = "own_" + std::string(pass->name());
  choice.tolerance = pass->tolerance();
  choice.options.passes.plan_passes = {std::move(pass)};
  return choice;
}

std::vector<std::string> PassFaults(const Workload& workload,
                                    const std::vector<RunTrace>& without_passes,
                                    const PassChoice& choice) {
  std::vector<std::string> faults;
  try {
    WorkloadRunner runner(workload, choice.options);
    for (size_t i = 0; i < workload.runs.size(); ++i) {
      const RunTrace& expected = without_passes[i];
      const RunTrace found = runner.Next(choice.tolerance > 0 ? &expected.before : nullptr);
      std::ranges::copy(RunDifferences(workload, i, expected, found, choice.tolerance),
                        std::back_inserter(faults));
    }
  } catch (const std::exception& error) {
    faults.push_back(StrCat("threw: ", error.what()));
  }
  return faults;
}

std::vector<std::string> EmulatedDeviceFaults(const Workload& workload,
                                              const std::vector<RunTrace>& on_cpu) {
  static const auto& all = *RegistryWithEmulation(DefaultOpRegistry()).release();
  static const auto& some = *RegistryWithEmulation(DefaultOpRegistry(), [](const OpDef& def) {
                               return def.type.size() % 2 == 0;
                             }).release();
  std::vector<std::string> faults;
  for (const OpRegistry* registry : {&all, &some}) {
    for (const PassChoice& choice : {NoPasses(), Choose("of_equal_bits", PassesOfEqualBits())}) {
      std::vector<std::string> found;
      CompileOptions options = choice.options;
      options.graphs = registry == &all && choice.name != NoPasses().name;
      try {
        found = TraceDifferences(
            workload, on_cpu,
            RunWorkload(workload, options, {.place = EmulatedPlace(), .registry = registry}), 0);
      } catch (const std::exception& error) {
        found = {StrCat("threw: ", error.what())};
      }
      AddFirst(found,
               StrCat("emulated device with ", registry == &all ? "all" : "some",
                      " kernels, passes ", choice.name),
               &faults);
    }
  }
  return faults;
}

std::vector<std::string> FaultsOfEveryPass(const Workload& workload) {
  const std::vector<RunTrace> without_passes = RunWorkload(workload, NoPasses().options);
  std::vector<std::string> all;
  for (const PassChoice& choice : PassChoices()) {
    AddFirst(PassFaults(workload, without_passes, choice),
             StrCat(workload.name, ", passes ", choice.name), &all);
  }
  AddFirst(EmulatedDeviceFaults(workload, without_passes), workload.name, &all);
  return all;
}

}  // namespace skiff::harness
