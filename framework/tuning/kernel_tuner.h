// Chooses among the kernel candidates of an op by timing them. Nothing is timed unless a caller
// makes a tuner and passes it to Compile:
//
//   auto tuner = std::make_shared<KernelTuner>(DefaultOpRegistry(),
//                                              KernelTunerOptions{.cache_file = "kernels.txt"});
//   CompiledProgram step = exe.Compile(main, {.tuner = tuner});
//
// When a plan is prepared, each op whose shapes and layouts more than one candidate accepts is
// timed once; ops of equal key (tuning_key.h) share the result, in this plan and in others. The
// candidate that would run without a tuner (KernelByRule) stays unless another is faster by more
// than 5 %. A candidate that is a reference, or whose scratch memory isn't modest, is timed only if
// it is the rule's.
//
// Two timings may disagree, and kernels differ in the last bits. To repeat a run to the bit, keep
// choices() with it and give them to FixChoices of the next run's tuner.
//
// Only one thread at a time may use a tuner: the one that prepares plans. Several executors may
// share one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/op/registry.h"
#include "framework/tuning/kernel_choices.h"
#include "framework/tuning/kernel_timing.h"

namespace skiff {

struct KernelTunerOptions {
  // Where choices are remembered from process to process; made if it isn't there. Empty: nowhere.
  // Written anew, in one piece, after each op that was timed, with what other processes have added.
  std::string cache_file;
  // Told what deserves attention, and what each op took: one line each. May be empty.
  std::function<void(const std::string&)> warn;
  std::function<void(const std::string&)> log;
  KernelTimer timer = TimeKernels;
};

// What a tuner has decided about one key.
struct TunedKernel {
  std::string op;         // for people: type, shapes and layouts of the inputs
  std::string rule;       // the candidate that the rule takes
  KernelChoice choice;    // the one that the tuner takes
  bool is_timed = false;  // by this tuner; false: remembered
};

class KernelTuner {
 public:
  // Reads the cache file, if there is one. A file of another machine (processor, libraries) or of
  // another version, or one that is damaged, is left aside with a warning, and replaced when
  // something is timed. The registry outlives the tuner. Error as InputFile for a file that can't
  // be read.
  explicit KernelTuner(const OpRegistry& registry, KernelTunerOptions options = {});
  KernelTuner(const KernelTuner&) = delete;
  KernelTuner& operator=(const KernelTuner&) = delete;

  const OpRegistry& registry() const { return registry_; }

  // The candidate to run: the fixed one, or the remembered one, else the fastest. The rule's for
  // an op that can't be tried out on made-up data: one that draws numbers, checks data, has a side
  // effect, reads ragged rows or runs elsewhere than on the CPU. Error (kFailedPrecondition) if a
  // fixed candidate isn't there or doesn't accept the op; as KernelByRule, the kernels and
  // AtomicWriteFile.
  const KernelDef& Choose(const TuningRequest& request);

  // From now on these are all there is, for any number of threads: what they don't know goes by
  // rule, with a warning. Another warning if they come from another machine.
  void FixChoices(KernelChoices choices);
  // All that was fixed or decided so far, to be fixed again.
  KernelChoices choices() const;

  // "14 kernels tuned, 9 of them timed now, 2 not those of the rule".
  std::string Summary() const;
  // By key, what was decided where there was a choice.
  const std::map<std::string, TunedKernel>& decisions() const { return decisions_; }

 private:
  std::vector<const KernelDef*> Candidates(const OpContext& context, const KernelDef& rule) const;
  const KernelChoice* FixedChoice(const std::string& key) const;
  const KernelDef& KernelOf(const OpContext& context, const std::string& name) const;
  // Returns nullptr if there are fixed choices and this isn't one.
  const TunedKernel* Decide(const TuningRequest& request,
                            const std::vector<const KernelDef*>& candidates);
  void Remember(const std::string& key, const TunedKernel& decision);
  KernelChoices ReadCache();
  void WriteCache();
  void WarnOfUnknown(const std::string& op);
  void Log(const std::string& line) const;
  void Warn(const std::string& message) const;

  const OpRegistry& registry_;
  KernelTunerOptions options_;
  std::map<std::string, std::string> machine_;
  std::optional<std::map<std::string, KernelChoice>> fixed_;
  std::map<std::string, KernelChoice, std::less<>> fixed_for_any_threads_;  // WithoutThreads
  bool warned_of_unknown_ = false;
  bool warned_of_damage_ = false;
  std::map<std::string, KernelChoice> remembered_;  // of the cache file, and timed
  std::map<std::string, TunedKernel> decisions_;
};

}  // namespace skiff
