// A compiled program, and one with its feeds and fetches bound. Executor::Compile makes the first;
// executor.h says how both are used.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "framework/executor/api/feed_list.h"
#include "framework/executor/api/instruction_time.h"
#include "framework/executor/api/plan_statistics.h"
#include "framework/ir/api/program.h"
#include "framework/tensor/api/tensor.h"
#include "framework/transpiler/api/pass_options.h"

namespace skiff {

namespace internal {
struct CompiledState;
}  // namespace internal

// A program with its feeds and fetches bound to storage, on a plan of its own. Copies share it.
// When the scope's storage has moved (a variable was set, loaded or erased), a step throws an Error
// (kFailedPrecondition) that says so, and the caller binds again. The programs bound by one
// compiled program share one arena, since one runs at a time. Feeds and fetches are those of the
// last caller, so threads that share a bound program must take turns themselves.
class BoundProgram {
 public:
  // Returns false once the scope's storage has moved.
  bool is_current() const;
  // Makes steps read these tensors from now on and returns true, if the plan serves them: feeds of
  // the same names in the same order, dtypes and shapes. Ragged feeds may have other rows and LoDs,
  // as long as they round up to the same capacity. Otherwise changes nothing; Bind makes another
  // plan. Allocates nothing, unless a kernel that fixes its rows must be prepared for others
  // (PreparationStatistics counts them). Throws an Error if a feed shares its memory with a
  // variable that steps write, has no data, or isn't on the CPU, and what preparing a kernel
  // throws; steps then need other feeds first.
  bool Feed(const FeedList& feeds);
  // Runs the program once. Allocates nothing, unless shapes depend on data: then the plan goes as
  // far as the shapes are known, and each step looks up, or makes, the plans that follow. Throws
  // what the ops throw: the Error names op, block and creation site. Throws an Error
  // (kInvalidArgument) that names the feed if a bool of it is neither 0 nor 1.
  void Step();
  // The same, without graphs. Returns the time of each instruction of plan(), in order, then those
  // of the bodies of its loops, over all iterations, which aren't in the time of the loop ("while >
  // mul" is a mul in a while), then the same of plans that follow. For tools: it allocates.
  std::vector<InstructionTime> TimedStep();
  // The value of fetch i after the last Step, on the CPU, until the next Step. Waits for the
  // device. Throws an Error: kFailedPrecondition before the first Step and after one that has
  // failed, kOutOfRange for an i beyond the last fetch, kIo if the device has failed.
  const Tensor& fetch(size_t i) const;
  PlanStatistics statistics() const;
  const ir::Plan& plan() const;

 private:
  friend class CompiledProgram;
  struct Binding;
  explicit BoundProgram(std::shared_ptr<Binding> binding) : binding_(std::move(binding)) {}
  std::shared_ptr<Binding> binding_;
};

class CompiledProgram {
 public:
  CompiledProgram(CompiledProgram&&) noexcept;
  CompiledProgram& operator=(CompiledProgram&&) noexcept;
  ~CompiledProgram();

  // Runs once and returns the fetches in order, each a tensor of its own. Throws an Error for a
  // feed that is missing, unknown, given twice, of another dtype or LoD level, of a shape that the
  // variable's dims don't admit, or with a bool that is neither 0 nor 1, and for an unknown fetch.
  // After any Error, whether about the arguments or about their data, the scope is as it was before
  // the call: running statistics, counters and parameters haven't moved. The feeds are released
  // when the call returns.
  std::vector<Tensor> Run(const FeedList& feeds, const FetchList& fetches);
  // Binds the feeds' buffers: Step reads them as they are then. With ragged feeds, the plan serves
  // all rows and LoDs that round up to the same capacity (BoundProgram::Feed). Same errors as Run.
  BoundProgram Bind(const FeedList& feeds, const FetchList& fetches);

  // Returns the same program for another thread: one clone runs while others do. The clone has
  // plans, an arena and forms of weights of its own, and shares the memory of the variables in the
  // scope. Of variables that decide what memory kernels touch (DecidingVariables), the clone has
  // copies: whole numbers, bools, and floats that are read by an op which refuses data or whose
  // output shapes depend on data. So what a training or Scope::Assign writes into that memory,
  // clones see, unless they run meanwhile: then a run reads some elements before and some after. A
  // variable that is set or erased later stays what it was for the clone, which needs neither the
  // executor nor its scope. The first run (or Bind) of a training with flat parameters in the scope
  // (the pass flatten_parameters) sets the parameters, so clone after the run. Throws an Error:
  // kUnimplemented on a device; kFailedPrecondition for a program that writes variables of the
  // scope, and for a program with a tuner, since a tuner belongs to one thread.
  CompiledProgram Clone() const;

  // The program after the program passes, and what they did.
  const Program& program() const;
  const std::vector<PassReport>& reports() const;
  size_t cached_plans() const;
  PreparationStatistics preparation() const;

 private:
  friend class Executor;
  explicit CompiledProgram(std::shared_ptr<internal::CompiledState> state);
  std::shared_ptr<internal::CompiledState> state_;
};

}  // namespace skiff
