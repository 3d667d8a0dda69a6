// Chooses among the kernel candidates of an op by timing them. Nothing is timed unless a caller
// makes a tuner and passes it to Compile:
//
//   auto tuner = std::make_shared<KernelTuner>(DefaultOpRegistry(),
//                                              KernelTunerOptions{.cache_file = "kernels.txt"});
//   CompiledProgram step = exe.Compile(main, {.tuner = tuner});
//
// When a plan is prepared, each op whose shapes and layouts more than one candidate accepts is
// timed once; ops of equal key (tuning_key.h) share the result, in all plans. The candidate that
// would run without a tuner (KernelByRule) stays unless another is faster by more than 5 %. A
// candidate that is a reference, or whose scratch memory isn't modest, is timed only if it is the
// rule's.
//
// Two timings may disagree, and kernels differ in the last bits. To repeat a run to the bit, keep
// the choices() and give them to FixChoices of the next run's tuner.
//
// Only one thread at a time may use a tuner: the one that prepares plans. Several executors may
// share one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/tuning/kernel_choices.h"

namespace skiff {

class OpRegistry;
namespace internal {
struct KernelDef;
struct TuningRequest;

// Returns the seconds that a run of each candidate takes, in their order. All accept the op.
using KernelTimer = std::function<std::vector<double>(
    const TuningRequest& request, const std::vector<const KernelDef*>& candidates)>;
}  // namespace internal

struct KernelTunerOptions {
  // The file that keeps choices from process to process; made if it doesn't exist. Empty: none.
  // Rewritten atomically after each op that was timed, with the choices that other processes have
  // added.
  std::string cache_file = {};
  // Called with a line for each warning, and for each op that was timed. May be empty.
  std::function<void(const std::string&)> warn = {};
  std::function<void(const std::string&)> log = {};
  internal::KernelTimer timer = {};  // empty: TimeKernels
};

// A tuner's decision about one key.
struct TunedKernel {
  std::string op = {};       // for people: type, shapes and layouts of the inputs
  std::string rule = {};     // the candidate that the rule takes
  KernelChoice choice = {};  // the candidate that the tuner takes
  bool is_timed = false;     // by this tuner; false: remembered
};

class KernelTuner {
 public:
  using KernelDef = internal::KernelDef;
  using TuningRequest = internal::TuningRequest;

  // Reads the cache file, if there is one. A damaged file, or a file of another machine (processor,
  // libraries) or version, is left aside with a warning, and replaced when something is timed. The
  // registry outlives the tuner. Error as InputFile for a file that can't be read.
  explicit KernelTuner(const OpRegistry& registry, KernelTunerOptions options = {});
  ~KernelTuner();
  KernelTuner(const KernelTuner&) = delete;
  KernelTuner& operator=(const KernelTuner&) = delete;

  const OpRegistry& registry() const;

  // Returns the candidate to run: the fixed, else the remembered, else the fastest. Returns the
  // rule's for an op that can't be tried on made-up data: an op that draws numbers, checks data,
  // has a side effect, reads ragged rows or doesn't run on the CPU. Throws an Error
  // (kFailedPrecondition) if a fixed candidate doesn't exist or doesn't accept the op, and what
  // KernelByRule, the kernels and AtomicWriteFile throw.
  const KernelDef& Choose(const TuningRequest& request);

  // Uses only these choices from now on, for any number of threads. Ops that they don't know follow
  // the rule, with a warning. Also warns if they come from another machine.
  void FixChoices(KernelChoices choices);
  // Returns everything that was fixed or decided so far, for FixChoices.
  KernelChoices choices() const;

  // "14 kernels tuned, 9 of them timed now, 2 not those of the rule".
  std::string Summary() const;
  // Returns the decisions about ops with several candidates, by key.
  const std::map<std::string, TunedKernel>& decisions() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace skiff
