// Scopes, executors, and the programs that they compile.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/comm/rank_resources.h"
#include "framework/io/weights_hash.h"
#include "framework/ir/op_role.h"
#include "framework/ir/program.h"
#include "framework/tensor/replaced_values.h"
#include "framework/training/average.h"
#include "framework/transpiler/pass.h"
#include "framework/tuning/kernel_tuner.h"
#include "python_stub/binding.h"
#include "python_stub/running.h"
#include "python_stub/scope_lock.h"

namespace skiff::python {
namespace {

// Named tuples of figures. They live as long as the process.
struct TupleClasses {
  py::object pass_report;
  py::object plan_statistics;
  py::object instruction_time;
};
TupleClasses& Tuples() {
  static auto& classes = *new TupleClasses;
  return classes;
}

// ---- scopes

Tensor ScopeTensor(SharedScope& scope, py::handle variable) {
  const std::string name = NameOf(variable);
  const ScopeLock lock(scope);
  return scope.scope.Get(name);
}

py::object GetItem(SharedScope& scope, py::handle variable) {
  const std::string name = NameOf(variable);
  Tensor copy;
  {
    const ScopeLock lock(scope);
    copy = CopyToCpu(scope.scope.Get(name));
  }
  return ArrayOf(copy);
}

void SetItem(SharedScope& scope, py::handle variable, const py::object& value) {
  const std::string name = NameOf(variable);
  const Tensor tensor = TensorOf(value, StrCat("scope[\"", name, "\"]")).tensor;
  // The scope's own copy, since nothing but runs may write to its storage.
  const Tensor copy = CopyToCpu(tensor);
  const ScopeLock lock(scope);
  scope.scope.Assign(name, copy);
}

std::vector<std::string> ScopeNames(SharedScope& scope) {
  const ScopeLock lock(scope);
  return scope.scope.Names();
}

void DelItem(SharedScope& scope, py::handle variable) {
  const std::string name = NameOf(variable);
  const ScopeLock lock(scope);
  scope.scope.Get(name);
  scope.scope.Erase(name);
}

bool Contains(SharedScope& scope, py::handle variable) {
  const std::string name = NameOf(variable);
  const ScopeLock lock(scope);
  return scope.scope.Find(name) != nullptr;
}

void BindScope(py::module_& module) {
  py::class_<SharedScope, std::shared_ptr<SharedScope>>(
      module, "Scope", "Named tensors that outlive a run: parameters, optimizer states, counters.")
      .def(py::init<>())
      .def(
          "__getitem__", &GetItem, py::arg("name"),
          "Returns a copy of a value, by name or by Variable, as an array. Raises NotFoundError, a "
          "KeyError.")
      .def("__setitem__", &SetItem, py::arg("name"), py::arg("value"),
           "Copies an array into the variable's storage if shape and dtype are the same; otherwise "
           "gives it another storage, so that bound programs have to be bound again.")
      .def("__delitem__", &DelItem, py::arg("name"))
      .def("__contains__", &Contains, py::arg("name"))
      .def("__len__", [](SharedScope& self) { return ScopeNames(self).size(); })
      .def("__iter__", [](SharedScope& self) { return py::iter(py::cast(ScopeNames(self))); })
      .def("keys", &ScopeNames, "Returns all names, in ascending order.")
      .def(
          "tensor",
          [](SharedScope& self, py::handle variable) {
            return PythonTensor{.tensor = ScopeTensor(self, variable), .is_writable = false};
          },
          py::arg("name"),
          "Returns a read-only Tensor that shares the variable's storage: later runs change it.");
}

// ---- feeds and fetches

FeedList FeedsOf(const py::object& feeds, MayCopy may_copy) {
  FeedList list;
  for (const auto& [variable, value] : py::dict(feeds)) {
    std::string name = NameOf(variable);
    Tensor tensor = TensorOf(value, StrCat("feed \"", name, "\""), may_copy).tensor;
    list.emplace_back(std::move(name), std::move(tensor));
  }
  return list;
}

py::object FetchObject(const Tensor& tensor, const std::string& name, bool as_tensor) {
  if (as_tensor) return py::cast(PythonTensor{.tensor = tensor});
  SKIFF_ENFORCE(!tensor.is_selected_rows(), kInvalidArgument, "fetch \"", name,
                "\": selected rows have no array, expected return_tensors=True");
  return ArrayOf(tensor);
}

py::list FetchObjects(const std::vector<Tensor>& tensors, const FetchList& names, bool as_tensors) {
  py::list objects;
  for (size_t i = 0; i < tensors.size(); ++i) {
    objects.append(FetchObject(tensors[i], names[i], as_tensors));
  }
  return objects;
}

py::list Run(PythonCompiledProgram& self, const py::object& feed, const py::iterable& fetch,
             bool return_tensors) {
  const FeedList feeds = FeedsOf(feed, MayCopy::kYes);
  const FetchList fetches = NamesOf(fetch);
  const std::vector<Tensor> results = self.Do([&] { return self.program->Run(feeds, fetches); });
  return FetchObjects(results, fetches, return_tensors);
}

}  // namespace

// ---- ranks

void PythonCompiledProgram::CompareRanks() {
  const ir::Block& root = *program->program().root();
  // Programs without updates needn't run on all ranks.
  const bool trains = std::ranges::any_of(
      root.ops(), [](const auto& op) { return (op->role() & kRoleOptimize) != 0; });
  has_compared = !trains;
  if (has_compared) return;
  const Scope& scope = executor->scope->scope;
  training::RankFacts facts;
  for (const auto& var : root.vars()) {
    if (!var->is_parameter || scope.Find(var->name) == nullptr) continue;
    facts.emplace_back(StrCat("the hash of ", var->name), WeightsHash(scope, {var->name}));
  }
  const Tensor steps = CopyToCpu(scope.Get(kStepCounterName));
  facts.emplace_back("the number of finished steps", StrCat(steps.Item<int64_t>()));
  training::CheckEqualOnRanks(ranks->communicator(), facts);
  has_compared = true;
}

namespace {

Place PlaceOf(const std::string& name) {
  return name == "cuda" ? PlaceOfRank(name, Ranks::The().world()) : Place::FromName(name);
}

// ---- compiling

CompileOptions OptionsOf(const std::string& passes, const std::optional<MemoryOptions>& memory,
                         const KernelNames& kernels, const std::string& tuned_kernels, bool graphs,
                         const std::string& math, size_t plan_cache_capacity,
                         const DataParallelOptions& data_parallel) {
  CompileOptions options;
  options.data_parallel = data_parallel;
  options.graphs = graphs;
  options.math = MathModeFromName(math);
  if (memory) options.memory = *memory;
  options.passes = ParsePasses(passes);
  options.kernels = kernels;
  options.plan_cache_capacity = plan_cache_capacity;
  if (!tuned_kernels.empty()) {
    options.tuner = std::make_shared<KernelTuner>(DefaultOpRegistry(),
                                                  KernelTunerOptions{.cache_file = tuned_kernels});
  }
  return options;
}

std::shared_ptr<PythonCompiledProgram> Compile(const std::shared_ptr<PythonExecutor>& executor,
                                               const Program& program,
                                               const CompileOptions& options) {
  // Compiled from a copy, since other threads may change the program meanwhile.
  const std::unique_ptr<Program> copy = program.Clone();
  std::optional<CompiledProgram> compiled;
  {
    const ScopeLock lock(*executor->scope);
    compiled = executor->executor.Compile(*copy, options);
  }
  return std::make_shared<PythonCompiledProgram>(
      executor, std::shared_ptr<std::mutex>(executor->scope, &executor->scope->mutex),
      RanksOf(options.data_parallel), std::move(*compiled));
}

std::shared_ptr<PythonCompiledProgram> Clone(const PythonCompiledProgram& self) {
  std::optional<CompiledProgram> clone;
  {
    const ScopeLock lock(*self.mutex);
    clone = self.program->Clone();
  }
  return std::make_shared<PythonCompiledProgram>(self.executor, std::make_shared<std::mutex>(),
                                                 self.ranks, std::move(*clone));
}

std::shared_ptr<SharedScope> GatherScope(PythonCompiledProgram& self) {
  const std::unique_ptr<Scope> gathered = self.Do([&] { return self.program->GatherScope(); });
  auto scope = std::make_shared<SharedScope>();
  for (const std::string& name : gathered->Names()) scope->scope.Set(name, gathered->Get(name));
  return scope;
}

PythonBoundProgram Bind(const std::shared_ptr<PythonCompiledProgram>& self, const py::object& feed,
                        const py::iterable& fetch) {
  const FeedList feeds = FeedsOf(feed, MayCopy::kNo);
  const FetchList fetches = NamesOf(fetch);
  std::optional<BoundProgram> bound;
  {
    const ScopeLock lock(*self->mutex);
    bound = self->program->Bind(feeds, fetches);
  }
  return {self, std::shared_ptr<BoundProgram>(new BoundProgram(std::move(*bound)),
                                              FreesLocked{self->mutex})};
}

void BindPrepared(py::module_& module) {
  py::class_<PythonBoundProgram>(
      module, "BoundProgram",
      "A program with its feeds and fetches bound to memory: steps look up nothing.")
      .def(
          "step",
          [](PythonBoundProgram& self) { self.compiled->Do([&] { self.program->Step(); }); },
          "Runs the program once, on what the feeds' arrays hold now. They must not change before "
          "it returns.")
      .def(
          "fetch",
          [](const PythonBoundProgram& self, size_t i) {
            // A share: a step in another thread may make another tensor in its place.
            Tensor value;
            {
              const ScopeLock lock(*self.compiled->mutex);
              value = self.program->fetch(i);
            }
            return ArrayOf(value, false);
          },
          py::arg("index") = 0,
          "Returns a read-only array of the value of a fetch. The next step writes to it. Raises "
          "FailedPreconditionError before the first step, and after one that has failed.")
      .def(
          "is_current",
          [](const PythonBoundProgram& self) {
            const ScopeLock lock(*self.compiled->mutex);
            return self.program->is_current();
          },
          "Returns False once the scope's storage has moved; then bind again.")
      .def(
          "statistics",
          [](const PythonBoundProgram& self) {
            PlanStatistics s;
            {
              const ScopeLock lock(*self.compiled->mutex);
              s = self.program->statistics();
            }
            return Tuples().plan_statistics(s.max_live_bytes, s.planned_bytes, s.unshared_bytes,
                                            s.derived_bytes, s.persistable_bytes, s.rollback_bytes,
                                            s.instructions, s.layout_copies);
          },
          "Returns the bytes and the instructions of the plan.")
      .def(
          "timed_step",
          [](PythonBoundProgram& self) {
            const std::vector<InstructionTime> times =
                self.compiled->Do([&] { return self.program->TimedStep(); });
            py::list list;
            for (const InstructionTime& time : times) {
              list.append(
                  Tuples().instruction_time(time.type, time.kernel, time.output, time.seconds));
            }
            return list;
          },
          "Does a step and returns the time of each instruction.");
  py::class_<PythonCompiledProgram, std::shared_ptr<PythonCompiledProgram>>(
      module, "CompiledProgram", "A snapshot of a program, ready to run.")
      .def(
          "run", &Run, py::arg("feed") = py::dict(), py::arg("fetch") = py::tuple(),
          py::arg("return_tensors") = false,
          "Runs once and returns the fetches in order: arrays of their own, or Tensors. Feeds that "
          "are contiguous are read in place; no thread may write to them meanwhile. After an "
          "Error the scope is as it was before.")
      .def("bind", &Bind, py::arg("feed") = py::dict(), py::arg("fetch") = py::tuple(),
           "Binds the arrays: each step reads them as they are then, so they must be contiguous.")
      .def("clone", &Clone,
           "Returns the same program for another thread: clones of a program run at the same time. "
           "They share the weights; whatever else a run writes to, each has for itself. Raises "
           "FailedPreconditionError for a program that changes variables, such as a training, and "
           "UnimplementedError on a device.")
      .def("gather_scope", &GatherScope,
           "Returns a scope to save from, which has the variables of the executor's scope, in its "
           "memory; on rank 0 also the optimizer states, whole, of which each rank keeps a part "
           "(shard_optimizer). All ranks call it at the same step.")
      .def_property_readonly(
          "program",
          [](const PythonCompiledProgram& self) { return self.program->program().Clone(); },
          "A copy of the program after the program passes.")
      .def_property_readonly(
          "reports",
          [](const PythonCompiledProgram& self) {
            py::list list;
            for (const PassReport& report : self.program->reports()) {
              list.append(Tuples().pass_report(report.pass, report.changes, report.summary));
            }
            return list;
          },
          "What each program pass did.");
}

void BindTheExecutor(py::module_& module) {
  py::class_<PythonExecutor, std::shared_ptr<PythonExecutor>>(
      module, "Executor",
      "Runs programs in a scope. Other threads of Python go on meanwhile; those that use the same "
      "scope wait, but for the clones of a program.")
      .def(py::init([](const std::string& place, std::shared_ptr<SharedScope> scope) {
             if (scope == nullptr) scope = std::make_shared<SharedScope>();
             return std::make_shared<PythonExecutor>(PlaceOf(place), std::move(scope));
           }),
           py::arg("place") = PlaceName(Place::Default()), py::arg("scope") = py::none(),
           "Makes a scope of its own if none is given. Of several ranks, \"cuda\" is the device "
           "with "
           "the number local_rank(). Raises an Error for a place that this build or machine lacks.")
      .def_property_readonly("scope", [](const PythonExecutor& self) { return self.scope; })
      .def_property_readonly(
          "place", [](const PythonExecutor& self) { return PlaceName(self.executor.place()); })
      .def(
          "compile",
          [](const std::shared_ptr<PythonExecutor>& self, const Program& program,
             const std::string& passes, const std::optional<MemoryOptions>& memory,
             const KernelNames& kernels, const std::string& tuned_kernels, bool graphs,
             const std::string& math, size_t plan_cache_capacity, bool data_parallel,
             const std::string& reduction, int64_t bucket_bytes, const std::string& overlap,
             bool shard_optimizer, bool sync_batch_norm) {
            const RankArguments ranks = {data_parallel, reduction,       bucket_bytes,
                                         overlap,       shard_optimizer, sync_batch_norm};
            return Compile(
                self, program,
                OptionsOf(passes, memory, kernels, tuned_kernels, graphs, math, plan_cache_capacity,
                          OptionsOfRanks(ranks, self->executor.place())));
          },
          py::arg("program"), py::kw_only(), py::arg("passes") = "", py::arg("memory") = py::none(),
          py::arg("kernels") = KernelNames(), py::arg("tuned_kernels") = "",
          py::arg("graphs") = true, py::arg("math") = "full", py::arg("plan_cache_capacity") = 32,
          py::arg("data_parallel") = RankArguments().data_parallel,
          py::arg("reduction") = RankArguments().reduction,
          py::arg("bucket_bytes") = RankArguments().bucket_bytes,
          py::arg("overlap") = RankArguments().overlap,
          py::arg("shard_optimizer") = RankArguments().shard_optimizer,
          py::arg("sync_batch_norm") = RankArguments().sync_batch_norm,
          "Compiles a snapshot of the program.\n\n"
          "Keyword arguments:\n"
          "  passes: \"+fuse_optimizer,-layout\" runs the first as well and leaves out the second\n"
          "  memory: a MemoryOptions\n"
          "  kernels: from op types to the names of their kernels\n"
          "  tuned_kernels: a file that keeps which kernels were measured to be the fastest\n"
          "  graphs: on a device, launch stretches of instructions as graphs\n"
          "  math: on a device, \"tf32\" lets products and convolutions of float32 round their\n"
          "    factors to TF32, which is faster; \"full\" doesn't\n"
          "  plan_cache_capacity: how many plans, one for each signature of a run, are kept\n"
          "  data_parallel: all ranks run the program together, each on batches of its own: an "
          "update\n"
          "    takes the mean of their gradients. Alone if there are no other ranks.\n"
          "  reduction: \"ranks\" adds gradients in the order of the ranks, which gives the bits "
          "of one\n"
          "    process with as many merged steps, \"fast\" in any order; \"auto\": ranks on the "
          "CPU,\n"
          "    fast on a device\n"
          "  bucket_bytes: gradients are added in groups of at least so many bytes; 0: each alone\n"
          "  overlap: whether gradients are added while others are computed: \"on\", \"off\" or "
          "\"auto\"\n"
          "  shard_optimizer: whether each rank keeps a part only of the optimizer's states\n"
          "  sync_batch_norm: whether batch norms take the statistics of the batches of all ranks")
      .def(
          "run",
          [](const std::shared_ptr<PythonExecutor>& self, const Program& program,
             const py::object& feed, const py::iterable& fetch, bool return_tensors) {
            return Run(*Compile(self, program, {}), feed, fetch, return_tensors);
          },
          py::arg("program"), py::arg("feed") = py::dict(), py::arg("fetch") = py::tuple(),
          py::arg("return_tensors") = false,
          "Compiles and runs once, alone: for startup programs.");
}

// Values of a scope that are averages for the time of a `with`.
class AveragedValues {
 public:
  AveragedValues(std::shared_ptr<PythonExecutor> executor,
                 const optimizer::ParameterAverage& average)
      : executor_(std::move(executor)), average_(average) {}
  ~AveragedValues() {
    if (values_ != nullptr) Exit();
  }

  void Enter() {
    SKIFF_ENFORCE(values_ == nullptr, kFailedPrecondition, "these averages are applied already");
    const ScopeLock lock(*executor_->scope);
    values_.reset(new ReplacedValues(training::ApplyAverage(average_, &executor_->executor)));
  }

  void Exit() {
    const ScopeLock lock(*executor_->scope);
    values_.reset();
  }

 private:
  std::shared_ptr<PythonExecutor> executor_;
  const optimizer::ParameterAverage& average_;
  std::unique_ptr<ReplacedValues> values_;
};

void BindAverages(py::module_& module) {
  py::class_<AveragedValues>(
      module, "averaged",
      "Replaces the values of parameters by their averages, to evaluate and save with:\n\n"
      "    with skiff.averaged(executor, average):\n        ...\n\n"
      "Meanwhile nothing trains in the scope. Afterwards it has its own values again, bit for bit.")
      .def(py::init<std::shared_ptr<PythonExecutor>, const optimizer::ParameterAverage&>(),
           py::arg("executor"), py::arg("average"), py::keep_alive<1, 3>())
      .def("__enter__", &AveragedValues::Enter)
      .def("__exit__", [](AveragedValues& self, const py::args& /*failure*/) { self.Exit(); });
}

}  // namespace

void BindExecutor(py::module_& module) {
  Tuples().pass_report = NamedTupleClass(module, "PassReport", {"name", "changes", "summary"});
  Tuples().plan_statistics =
      NamedTupleClass(module, "PlanStatistics",
                      {"max_live_bytes", "planned_bytes", "unshared_bytes", "derived_bytes",
                       "persistable_bytes", "rollback_bytes", "instructions", "layout_copies"});
  Tuples().instruction_time =
      NamedTupleClass(module, "InstructionTime", {"type", "kernel", "output", "seconds"});
  BindScope(module);
  BindPrepared(module);
  BindTheExecutor(module);
  BindAverages(module);
  module.def("program_pass_names", &ProgramPassNames,
             "Returns the names of all passes over programs, in the order in which they run.");
  module.def("plan_pass_names", &PlanPassNames,
             "Returns the names of all passes over plans, in the order in which they run.");
}

}  // namespace skiff::python
