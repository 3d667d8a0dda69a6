#include "framework/tuning/machine_difference.h"

#include <set>
#include <vector>

#include "framework/base/str_cat.h"

namespace skiff {

std::string MachineDifference(const std::map<std::string, std::string>& machine,
                              const KernelChoices& choices) {
  const auto value_of = [](const std::map<std::string, std::string>& values,
                           const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? "absent" : found->second;
  };
  std::set<std::string> names;
  for (const auto& [name, value] : machine) names.insert(name);
  for (const auto& [name, value] : choices.machine) names.insert(name);
  std::vector<std::string> differences;
  for (const std::string& name : names) {
    const std::string here = value_of(machine, name);
    const std::string there = value_of(choices.machine, name);
    if (here != there)
      differences.push_back(StrCat(name, " is ", here, " here, ", there, " there"));
  }
  return Join(differences, ", ");
}

}  // namespace skiff
