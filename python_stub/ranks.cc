#include "python_stub/ranks.h"

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/comm/launched_ranks.h"
#include "framework/comm/nccl_communicator.h"
#include "framework/comm/rank_resources.h"
#include "python_stub/scope_lock.h"

namespace skiff::python {

namespace py = pybind11;

namespace {

// Never destroyed, since the exit of the process uses them.
std::atomic<Ranks*> started = nullptr;
std::mutex& Starting() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

World WorldAlone() {
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, HOST_NAME_MAX);
  return {.host = host};
}

void FlushOutput() {
  const py::module_ sys = py::module_::import("sys");
  for (const char* name : {"stdout", "stderr"}) {
    const py::object stream = sys.attr(name);
    if (!stream.is_none()) stream.attr("flush")();
  }
}

// An exception that ends Python is printed as always, then ends all ranks.
void AbortAfterExceptions() {
  const py::module_ sys = py::module_::import("sys");
  const py::object print = sys.attr("excepthook");
  sys.attr("excepthook") = py::cpp_function(
      [print](const py::object& type, const py::object& value, const py::object& traceback) {
        print(type, value, traceback);
        if (Ranks::The().IsForkedChild()) return;
        const py::list lines =
            py::module_::import("traceback").attr("format_exception_only")(type, value);
        const py::object last = lines[lines.size() - 1].attr("strip")();
        Ranks::Abort(py::str(last));
      });
}

// Python collects what it prints to a pipe, such as that of a launcher, and an abort would lose it.
void PrintByLines() {
  const py::object out = py::module_::import("sys").attr("stdout");
  if (!py::hasattr(out, "reconfigure")) return;
  out.attr("reconfigure")(py::arg("line_buffering") = true);
}

}  // namespace

Ranks::Ranks(double time_limit)
    : time_limit_(time_limit),
      communicator_(LaunchedRanks({.time_limit = time_limit})),
      world_(communicator_ == nullptr ? WorldAlone() : communicator_->world()) {
  if (communicator_ == nullptr) return;
  omp_set_num_threads(ThreadsOfRank(communicator_.get()));
  // Only a function of this kind hears of the status. It runs before the function of StartMpi.
  on_exit(&EndAtExit, this);
}

bool Ranks::StartNow(double time_limit) {
  {
    const ScopeLock lock(Starting());
    if (started != nullptr) return false;
    started = new Ranks(time_limit);
  }
  if (The().communicator() == nullptr) return true;
  AbortAfterExceptions();
  PrintByLines();
  return true;
}

void Ranks::Start(double time_limit) {
  SKIFF_ENFORCE(StartNow(time_limit), kFailedPrecondition,
                "the ranks have started already: expected init() before all else that uses them");
}

Ranks& Ranks::The() {
  if (started == nullptr) StartNow(LaunchOptions().time_limit);
  return *started;
}

void Ranks::Abort(const std::string& message) {
  FlushOutput();
  const Ranks* const ranks = started;
  if (ranks == nullptr) {
    std::fprintf(stderr, "%s\n", message.c_str());
  } else if (ranks->communicator() == nullptr || ranks->IsForkedChild()) {
    ranks->world().Report(message);
  } else {
    ranks->communicator()->Abort(message);
  }
  std::_Exit(1);
}

void Ranks::EndAtExit(int status, void* ranks) {
  Ranks& own = *static_cast<Ranks*>(ranks);
  // A thread that the child lacks may have held the mutex at the fork.
  if (own.IsForkedChild()) return;
  const std::lock_guard lock(own.mutex_);
  // Otherwise the function of StartMpi, which runs next, ends all ranks.
  if (status == 0 && own.uses_ == 0) own.communicator_.reset();
}

Ranks::Use::Use(Ranks* ranks) : ranks_(*ranks) {
  const std::lock_guard lock(ranks_.mutex_);
  SKIFF_ENFORCE(ranks_.uses_ == 0 || ranks_.user_ == std::this_thread::get_id(),
                kFailedPrecondition,
                "another thread of this rank works with the other ranks: expected one at a time");
  SKIFF_ENFORCE(ranks_.failure_.empty(), kFailedPrecondition,
                "earlier work with the other ranks has failed on this rank, which may be out of "
                "step since: expected the end of the process. The failure was: ",
                ranks_.failure_);
  ranks_.user_ = std::this_thread::get_id();
  ++ranks_.uses_;
}

Ranks::Use::~Use() {
  const std::lock_guard lock(ranks_.mutex_);
  --ranks_.uses_;
}

std::shared_ptr<Communicator> Ranks::DeviceCommunicator(Place place) {
  std::shared_ptr<Communicator>& communicator = of_devices_[place.index];
  if (communicator == nullptr) communicator = MakeNcclRank(communicator_, place, time_limit_);
  return communicator;
}

DataParallelOptions Ranks::Options(const RankArguments& arguments, Place place) {
  const std::string order = place.is_cpu() ? "ranks" : "fast";
  DataParallelOptions options = {
      .order = SumOrderFromName(arguments.reduction == "auto" ? order : arguments.reduction),
      .bucket_bytes = arguments.bucket_bytes,
      .overlap = OverlapFromName(arguments.overlap),
      .shard_optimizer = arguments.shard_optimizer,
      .sync_batch_norm = arguments.sync_batch_norm};
  if (communicator_ == nullptr) return options;
  // Not an owner: Python may never destroy a program, and the exit ends MPI all the same.
  options.communicator = {std::shared_ptr<void>(), communicator_.get()};
  if (!place.is_cpu()) {
    const py::gil_scoped_release others_run;
    Do([&] { options.device_communicator = DeviceCommunicator(place); });
  }
  return options;
}

DataParallelOptions OptionsOfRanks(const RankArguments& arguments, Place place) {
  if (arguments.data_parallel) return Ranks::The().Options(arguments, place);
  SKIFF_ENFORCE(arguments == RankArguments(), kInvalidArgument,
                "reduction, bucket_bytes, overlap, shard_optimizer and sync_batch_norm are about "
                "several ranks: "
                "expected data_parallel=True with them");
  return {};
}

Ranks* RanksOf(const DataParallelOptions& options) {
  return options.communicator == nullptr ? nullptr : &Ranks::The();
}

}  // namespace skiff::python
