// Runs programs.
//
//   Executor exe(Place::Cpu());
//   exe.Run(startup);                                  // initialises the scope
//   CompiledProgram step = exe.Compile(main);          // program passes; a snapshot of main
//   float loss = step.Run({{"x", x}, {"y", y}}, {"loss"})[0].Item<float>();
//
// or, without any allocation or look-up in a step:
//
//   BoundProgram bound = step.Bind({{"x", x}, {"y", y}}, {"loss"});
//   for (…) { /* refill x and y in place */ bound.Step(); bound.fetch(0).Item<float>(); }
//
// On a device, feeds and fetches are on the CPU all the same. Run is over when it returns. Step may
// return while the device is still at work: it has copied the feeds, fetch waits, and so does every
// access to the scope, so that the next step can be prepared and put into the device's queue
// meanwhile. An Error about data comes from Step itself, as on the CPU. If the device fails at work
// that a Step has left to it, the next wait throws that (kIo), be it in fetch, the scope or another
// Step; the step counter has advanced, and what variables on the device hold is lost.
// Variables of the scope that are elsewhere move to the device when a program runs that
// declares them, but for those that the program keeps on the CPU (PlaceOfSlot). An op without a
// kernel for the device runs on the CPU, with copies of its arguments to and fro; OpsOnHost
// (framework/analysis/ops_on_host.h) tells which these are.
//
// While values of the scope are replaced (ReplacedValues), a run of a program with optimizer ops,
// or one that writes such a variable, throws an Error (kFailedPrecondition).
//
// The executor owns the scope (or borrows it) and outlives what it compiles, and so does a borrowed
// scope.
//
// Threads may share an executor and what it compiles: a call waits for one in another thread to
// end. Its scope is for one thread at a time, so while a program runs, no other thread may use it,
// nor run programs of another executor that borrows it. CompiledProgram::Clone serves one model
// from several threads at once.
#pragma once

#include <memory>
#include <vector>

#include "framework/base/place.h"
#include "framework/executor/api/compile_options.h"
#include "framework/executor/api/feed_list.h"
#include "framework/executor/api/instruction_time.h"
#include "framework/executor/api/plan_statistics.h"
#include "framework/executor/compiled_program.h"
#include "framework/ir/api/program.h"
#include "framework/op/api/default_registry.h"
#include "framework/tensor/api/tensor.h"
#include "framework/tensor/scope.h"

namespace skiff {

class Executor {
 public:
  // Makes a scope of its own if `scope` is nullptr; a borrowed one must outlive the executor.
  // Throws an Error for a place that this build or machine lacks.
  explicit Executor(Place place = Place::Default(), Scope* scope = nullptr,
                    const OpRegistry* registry = nullptr);
  // The scope keeps its address, and what `other` has compiled works as before. `other` then has
  // neither a place nor a scope: it can be destroyed and assigned to, and all else throws an Error
  // (kFailedPrecondition). An assignment destroys the scope that the executor owned, so nothing
  // that it has compiled may run any more.
  Executor(Executor&& other) noexcept;
  Executor& operator=(Executor&& other) noexcept;
  ~Executor();

  Place place() const;
  Scope& scope();
  const Scope& scope() const;

  // Throws an Error that lists all structural defects of the program (VerifyProgram, structure
  // only), one for a kernel in the options that doesn't exist, and what passes throw.
  CompiledProgram Compile(const Program& program, const CompileOptions& options = {});
  // Compiles and runs once: for startup programs.
  std::vector<Tensor> Run(const Program& program, const FeedList& feeds = {},
                          const FetchList& fetches = {});

 private:
  struct State;
  // Throws the Error if the executor was moved from.
  State& state() const;
  std::unique_ptr<State> state_;
};

}  // namespace skiff
