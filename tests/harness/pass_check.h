// Checks that passes don't change what programs compute.
#pragma once

#include <string>
#include <vector>

#include "framework/transpiler/pass.h"
#include "tests/harness/workload.h"

namespace skiff::harness {

// Compile options that choose passes.
struct PassChoice {
  std::string name;  // letters, digits and underscores
  CompileOptions options;
  // The sum of the tolerances of the chosen passes; 0 if each promises equal bits.
  double tolerance = 0;
};

// No pass at all.
PassChoice NoPasses();
// Returns the choices that every registered pass must pass, made from the registry: each pass
// alone; the default pipeline; the default pipeline without each of its passes, and with each pass
// that the pipeline omits; all omitted passes; and all passes.
std::vector<PassChoice> PassChoices();
// Chooses no registered pass, only the given one.
PassChoice OnlyPass(std::shared_ptr<const ProgramPass> pass);
PassChoice OnlyPass(std::shared_ptr<const PlanPass> pass);

// Runs the workload with the passes and compares each run with `without_passes`. Returns one
// message per difference (see workload.h), and one for an Error. If the choice has a tolerance,
// each run starts from the state it starts from without passes, so that differences don't add up.
std::vector<std::string> PassFaults(const Workload& workload,
                                    const std::vector<RunTrace>& without_passes,
                                    const PassChoice& choice);

// Runs the workload on an emulated device (emulated_device.h), with the kernels of the CPU, and
// compares it to the bit with `on_cpu`, runs without passes on the CPU. Has kernels for all ops,
// and for about half of them; runs no pass, and the default ones that change no bit. Returns
// messages as PassFaults does.
std::vector<std::string> EmulatedDeviceFaults(const Workload& workload,
                                              const std::vector<RunTrace>& on_cpu);

// Returns the first few faults of each of PassChoices(), after the name of the choice, and those of
// an emulated device.
std::vector<std::string> FaultsOfEveryPass(const Workload& workload);

}  // namespace skiff::harness
