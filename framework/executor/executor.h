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

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/place.h"
#include "framework/ir/api/program.h"
#include "framework/op/api/default_registry.h"
#include "framework/op/math_mode.h"
#include "framework/plan/api/recomputed.h"
#include "framework/tensor/api/tensor.h"
#include "framework/tensor/scope.h"
#include "framework/transpiler/api/memory_options.h"
#include "framework/transpiler/api/pass_options.h"

namespace skiff {

class KernelTuner;

// {name, tensor}; the tensors are read during the run, never written. If another thread writes to
// one meanwhile, the run reads some elements before and some after, but touches no other memory.
using FeedList = std::vector<std::pair<std::string, Tensor>>;
// Names of variables; the value is the one at the end of the program.
using FetchList = std::vector<std::string>;

struct CompileOptions {
  MemoryOptions memory = {};
  // Which passes run, by name: {.passes = {.skip = {"layout"}, .also = {"fuse_optimizer"}}}. Each
  // pass's header (framework/transpiler) says what it does; docs/training.md explains those of
  // optimizers, which run only when asked for, but for fuse_optimizer, which runs on a device.
  PipelineOptions passes = {};
  // From op type to the name of the kernel candidate to take where it accepts the shapes, or
  // "widened": bfloat16 and float16 then run by the float32 kernel (docs/precision.md). Compile
  // throws if there is no such op or candidate.
  KernelNames kernels = {};
  // Chooses the kernels of the ops whose type isn't in `kernels`. Without a tuner the kernel of
  // the highest priority runs that is worthwhile (KernelDef). Compile throws for a tuner of another
  // registry.
  std::shared_ptr<KernelTuner> tuner = {};
  // Makes a plan for the very rows of each run with ragged feeds, instead of one for all runs whose
  // rows round up to the same capacity: for comparisons. The results are the same bits, unless the
  // rows decide which kernel runs (KernelDef::is_worthwhile), as those of a convolution may.
  bool exact_rows = false;
  // On a device: captures each stretch of instructions that need nothing of the host as a graph in
  // the second run of a plan, and launches that from then on, which costs the host less. Not for
  // plans with ragged feeds. The results are the same bits. A run throws an Error (kIo,
  // kFailedPrecondition) if a kernel does what no graph can, such as waiting for the device.
  bool graphs = true;
  // On a device: how products and convolutions of float32 compute. MathMode::kTf32 lets cuBLASLt
  // and cuDNN round factors to TF32, which is faster; the results then differ in the fourth digit.
  // Kernels of our own, and recurrent ops, ignore it, as the CPU does.
  MathMode math = MathMode::kFull;
  // How often a `while` may run its block. Once more is an Error (kOutOfRange), since its condition
  // may never become false.
  int64_t max_loop_iterations = 10'000'000;
  size_t plan_cache_capacity = 32;  // plans kept, least recently used first to go; 0 is an Error
};

struct PlanStatistics {
  int64_t max_live_bytes = 0;  // the lower bound for the arena
  int64_t planned_bytes = 0;   // the arena
  // On a device, of the other arena: for what runs on the CPU.
  int64_t host_planned_bytes = 0;
  // The lower bound for the rows of the last run, of a plan for a capacity; else max_live_bytes.
  int64_t current_live_bytes = 0;
  int64_t unshared_bytes = 0;     // without any reuse
  int64_t derived_bytes = 0;      // other forms of parameters, owned by the plan
  int64_t persistable_bytes = 0;  // of the scope, as far as the plan uses it
  int64_t rollback_bytes = 0;     // copies of persistables, for when an op fails
  Recomputed recomputed = {};     // bodies of loops have their own (MemoryReport::loops)
  int64_t instructions = 0;
  int64_t layout_copies = 0;
  int64_t transfers = 0;  // copies between places
  int64_t graphs = 0;     // of the device, captured so far
  // On a device: what the host took in the last run to put all its work into the stream, and to run
  // what is on the CPU, without its waits for the device.
  double issue_seconds = 0;
};

// What a compiled program has spent on making plans and preparing kernels.
struct PreparationStatistics {
  int64_t plans = 0;
  int64_t kernels = 0;        // with those for other rows of plans that exist
  double plan_seconds = 0;    // with the kernels of new plans
  double kernel_seconds = 0;  // for other rows of plans that exist
};

struct InstructionTime {
  std::string type = {};  // Instruction::Name
  std::string kernel = {};
  std::string output = {};  // the first output's variable
  double seconds = 0;
};

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
  void CheckCurrent() const;
  template <typename RunOne>
  void RunWith(const RunOne& run_one);
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
  friend class BoundProgram;
  friend class Executor;
  struct State;
  explicit CompiledProgram(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

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
