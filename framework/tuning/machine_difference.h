// Whether the choices of a tuner were made on this machine.
#pragma once

#include <map>
#include <string>

#include "framework/tuning/kernel_choices.h"

namespace skiff {

// Returns how the machine of `choices` differs from `machine`, such as "cpu is A here, B there",
// with ", " between; empty if it doesn't.
std::string MachineDifference(const std::map<std::string, std::string>& machine,
                              const KernelChoices& choices);

}  // namespace skiff
