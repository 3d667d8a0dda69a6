// A compiled program, and a program with its feeds and fetches bound. Executor::Compile makes the
// compiled program; executor.h says how both are used.
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

class Scope;

namespace internal {
struct CompiledState;
}  // namespace internal

// A program with its feeds and fetches bound to storage, on a plan of its own. Copies share it.
// When the scope's storage has moved (a variable was set, loaded or erased), a step throws an Error
// (kFailedPrecondition) that says so, and the caller binds again. All programs bound by a compiled
// program share an arena, since only one runs at a time. A bound program has the feeds and fetches
// of its last caller, so threads that share it must take turns themselves.
class BoundProgram {
 public:
  // Returns false once the scope's storage has moved.
  bool is_current() const;
  // Makes steps read these tensors from now on and returns true, if the plan serves them: feeds of
  // the same names in the same order, dtypes and shapes. Ragged feeds may have other rows and LoDs,
  // as long as they round up to the same capacity. Otherwise changes nothing; Bind makes another
  // plan. Allocates nothing, unless a kernel that fixes its rows must be prepared for other rows
  // (PreparationStatistics counts such kernels). Throws an Error if a feed shares its memory with a
  // variable that steps write, has no data, or isn't on the CPU, and passes on Errors of preparing
  // a kernel; steps then need other feeds first.
  bool Feed(const FeedList& feeds);
  // Runs the program once. Allocates nothing, unless shapes depend on data: then the plan goes as
  // far as the shapes are known, and each step looks up, or makes, the plans that follow. Throws
  // the Errors of ops, which name op, block and creation site. Throws an Error (kInvalidArgument)
  // that names the feed if a bool of it is neither 0 nor 1.
  void Step();
  // The same, without graphs. Returns the time of each instruction of plan(), in order; then of
  // each instruction in the bodies of loops, over all iterations ("while > mul" is a mul in a
  // while); then the same for the plans that follow. The time of a loop leaves out its body. For
  // tools: it allocates.
  std::vector<InstructionTime> TimedStep();
  // The value of fetch i after the last Step, on the CPU, until the next Step. Waits for the
  // device. Throws an Error: kFailedPrecondition before the first Step and after a failed Step,
  // kOutOfRange for an i beyond the last fetch, kIo if the device has failed.
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

  // Runs once and returns the fetches in order, each a tensor of its own. Throws an Error for an
  // unknown fetch, and for a feed that is missing, unknown or given twice, has another dtype or LoD
  // level, doesn't fit the variable's dims, or has a bool other than 0 and 1. After any Error,
  // whether about the arguments or about their data, the scope is as it was before the call:
  // running statistics, counters and parameters haven't moved. The feeds are released when the call
  // returns.
  std::vector<Tensor> Run(const FeedList& feeds, const FetchList& fetches);
  // Binds the buffers of the feeds, whose elements each Step reads anew. With ragged feeds, the
  // plan serves all rows and LoDs that round up to the same capacity (BoundProgram::Feed). Same
  // errors as Run.
  BoundProgram Bind(const FeedList& feeds, const FetchList& fetches);

  // Returns the same program for another thread: clones run at the same time. The clone has plans,
  // an arena and forms of weights of its own, and shares the memory of the variables in the scope.
  // The clone copies the variables that decide where kernels read and write (DecidingVariables):
  // whole numbers, bools, and floats that are read by an op which refuses data or whose output
  // shapes depend on data. A clone sees values that a training or Scope::Assign writes into the
  // shared memory; a run at the same time reads some elements before the write and some after. If a
  // variable is set or erased later, the clone keeps the old tensor. The clone needs neither the
  // executor nor its scope. The first run (or Bind) of a training with flat parameters in the scope
  // (the pass flatten_parameters) sets the parameters, so clone after the run. Throws an Error:
  // kUnimplemented on a device; kFailedPrecondition for a program that writes variables of the
  // scope, and for a program with a tuner, since a tuner belongs to one thread.
  CompiledProgram Clone() const;

  // Returns a scope with all variables of the program's scope, in its memory; files that all ranks
  // can read are saved from it. Where ranks keep parts of the optimizer states
  // (DataParallelOptions::shard_optimizer), which no scope of a rank has whole, the scope on rank 0
  // has the states, whole and on the CPU. All ranks call it at the same step. Throws an Error:
  // kFailedPrecondition while averages replace parameters; what ShardStates and
  // Communicator::Exchange throw.
  std::unique_ptr<Scope> GatherScope();

  // The program after the program passes, and their reports.
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
