// Chooses among the kernel candidates of an op by timing them, and tells the layout pass how long
// ops take on plain and on blocked tensors. Off unless a caller makes a tuner and hands it to what
// is compiled:
//
//   auto tuner = std::make_shared<KernelTuner>(DefaultOpRegistry(),
//                                              KernelTunerOptions{.cache_file = "kernels.txt"});
//   CompiledProgram step = exe.Compile(main, {.tuner = tuner});
//
// When a plan is prepared, each op whose shapes and layouts more than one candidate accepts is
// timed once; ops of equal key (tuning_key.h) share the result, in this plan and in others. The
// candidate that would run without a tuner (OpRegistry::SelectKernel) stays unless another is
// faster by more than 5 %. A candidate that is a reference is timed only if it is the rule's.
//
// Two timings needn't agree, and kernels differ in the last bits. To repeat a run to the bit, keep
// choices() with it and give them to FixChoices of the tuner of the next.
//
// One thread at a time uses a tuner, that which prepares plans. Several executors may share one.
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
  CopyTimer copy_timer = TimeCopy;
};

// What a tuner has decided about one key. A copy between layouts has one candidate, "copy".
struct TunedKernel {
  std::string op;         // for people: type, shapes and layouts of the inputs
  std::string rule;       // the candidate that the rule takes
  KernelChoice choice;    // the one that the tuner takes
  bool is_timed = false;  // by this tuner; false: remembered
  bool runs = false;      // Choose gave it; false: it was asked for its time only
};

class KernelTuner {
 public:
  // A difference of times below this is noise: no reason to leave the rule.
  static constexpr double kNoiseFactor = 1.05;

  // Reads the cache file, if there is one. One of another machine (processor, libraries) is left
  // aside with a warning, and replaced when something is timed. The registry outlives the tuner.
  // Error as ParseKernelChoices for a file that is damaged, as InputFile for one that can't be
  // read.
  explicit KernelTuner(const OpRegistry& registry, KernelTunerOptions options = {});
  KernelTuner(const KernelTuner&) = delete;
  KernelTuner& operator=(const KernelTuner&) = delete;

  const OpRegistry& registry() const { return registry_; }

  // The candidate to run: the fixed one, or the remembered one, else the fastest. The rule's for
  // an op that can't be tried out on made-up data: one that draws numbers, checks data, has a side
  // effect, reads ragged rows or runs elsewhere than on the CPU. Error (kFailedPrecondition) if a
  // fixed candidate isn't there or doesn't accept the op; as SelectKernel, the kernels and
  // AtomicWriteFile.
  const KernelDef& Choose(const TuningRequest& request);

  // What a run of the op takes with the candidate of Choose, which may be the only one. Nothing for
  // an op that can't be tried out, and for one that fixed choices don't know. Errors of
  // SelectKernel, the kernels and AtomicWriteFile.
  std::optional<double> Seconds(const TuningRequest& request);
  // Likewise.
  std::optional<double> SecondsOfCopy(const TensorMeta& from, Layout to);

  // From now on these are all there is, for any number of threads: what they don't know goes by
  // rule, with a warning. Another warning if they come from another machine.
  void FixChoices(KernelChoices choices);
  // All that was fixed or decided so far, to be fixed again.
  KernelChoices choices() const;

  // "14 kernels tuned, 9 of them timed now, 2 not those of the rule".
  std::string Summary() const;
  // By key, what was decided where there was a choice, and what else was timed.
  const std::map<std::string, TunedKernel>& decisions() const { return decisions_; }
  // To the log of the options.
  void Log(const std::string& line) const;

 private:
  using Timer = std::function<std::vector<double>()>;

  std::vector<const KernelDef*> Candidates(const OpContext& context, const KernelDef& rule) const;
  const KernelChoice* FixedChoice(const std::string& key) const;
  const KernelDef& KernelOf(const OpContext& context, const std::string& name) const;
  // nullptr: there are fixed choices, and this isn't one.
  TunedKernel* Decide(const TuningRequest& request,
                      const std::vector<const KernelDef*>& candidates);
  TunedKernel* Decide(const std::string& key, const std::string& op,
                      const std::vector<std::string>& names, const Timer& timer);
  void Remember(const std::string& key, const TunedKernel& decision);
  KernelChoices ReadCache() const;
  void WriteCache();
  void WarnOfUnknown(const std::string& op, const std::vector<std::string>& names);
  void Warn(const std::string& message) const;

  const OpRegistry& registry_;
  KernelTunerOptions options_;
  std::map<std::string, std::string> machine_;
  std::optional<std::map<std::string, KernelChoice>> fixed_;
  std::map<std::string, KernelChoice, std::less<>> fixed_for_any_threads_;  // WithoutThreads
  bool warned_of_unknown_ = false;
  std::map<std::string, KernelChoice> remembered_;  // of the cache file, and timed
  std::map<std::string, TunedKernel> decisions_;
};

}  // namespace skiff
