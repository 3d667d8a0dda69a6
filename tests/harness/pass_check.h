// Whether passes leave alone what programs compute.
#pragma once

#include <string>
#include <vector>

#include "framework/transpiler/pass.h"
#include "tests/harness/workload.h"

namespace skiff::harness {

// A choice of passes, and of what else a program is compiled with.
struct PassChoice {
  std::string name;  // letters, digits and underscores
  CompileOptions options;
  // The sum over the passes chosen: 0 if each promises equal bits.
  double tolerance = 0;
};

// No pass at all.
PassChoice NoPasses();
// Everything that a registered pass has to stand, made from the registry: each pass alone, the
// default pipeline, that without each of its passes and with each pass that it leaves out, all that
// it leaves out, and all passes.
std::vector<PassChoice> PassChoices();
// No registered pass, but one of the caller's.
PassChoice OnlyPass(std::shared_ptr<const ProgramPass> pass);
PassChoice OnlyPass(std::shared_ptr<const PlanPass> pass);

// Runs the workload with the passes and compares each run with the one without any: one message for
// each difference (see workload.h), and for an Error. Where the choice has a tolerance, each run
// starts from the state that it starts from without passes, so that differences don't add up.
std::vector<std::string> PassFaults(const Workload& workload,
                                    const std::vector<RunTrace>& without_passes,
                                    const PassChoice& choice);

// The faults of all PassChoices(), with the name of the choice in front. Of each choice the first
// few.
std::vector<std::string> FaultsOfEveryPass(const Workload& workload);

}  // namespace skiff::harness
