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
// meanwhile. An Error about data comes from Step itself, as on the CPU. If the device fails after
// Step has returned, the next wait throws the Error (kIo), be it in fetch, the scope or another
// Step; the step counter has advanced, and the contents of variables on the device are lost. When a
// program runs, the variables of the scope that it declares move to the device, also from another
// device, except the variables that an op keeps on the CPU (PlaceOfSlot). Executors on several
// devices may run in one thread or, with scopes of their own, in several. An op without a kernel
// for the device runs on the CPU, with copies of its arguments to and fro; OpsOnHost
// (framework/analysis/ops_on_host.h) lists such ops.
//
// While values of the scope are replaced (ReplacedValues), a run throws an Error
// (kFailedPrecondition) if the program has optimizer ops or writes a replaced variable.
//
// The executor owns or borrows the scope. Executor and scope must outlive the compiled programs.
//
// Threads may share an executor and its compiled programs: a call waits until a call in another
// thread has ended. The scope is for one thread at a time: while a program runs, no other thread
// may use the scope, nor run programs of another executor that borrows the scope.
// CompiledProgram::Clone serves one model from several threads at once.
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
  // Makes a scope of its own if `scope` is nullptr; a borrowed scope must outlive the executor.
  // Throws an Error for a place that this build or machine lacks.
  explicit Executor(Place place = Place::Default(), Scope* scope = nullptr,
                    const OpRegistry* registry = nullptr);
  // The scope keeps its address, and the programs that `other` has compiled work as before. `other`
  // then has neither a place nor a scope: destroying and assigning to `other` are allowed, all else
  // throws an Error (kFailedPrecondition). An assignment destroys the scope that the executor
  // owned, so programs that the executor has compiled must not run any more.
  Executor(Executor&& other) noexcept;
  Executor& operator=(Executor&& other) noexcept;
  ~Executor();

  Place place() const;
  Scope& scope();
  const Scope& scope() const;

  // Throws an Error that lists all structural defects of the program (VerifyProgram, structure
  // only) or names a bad option (an unknown kernel, a value that makes no sense), and the Errors of
  // passes.
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
