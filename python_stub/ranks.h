// The ranks that a launcher has started, of which this process is one: for all programs and
// trainers of Python.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "framework/base/place.h"
#include "framework/comm/communicator.h"
#include "framework/training/rank_agreement.h"
#include "framework/transpiler/api/data_parallel_options.h"

namespace skiff::python {

// The keyword arguments about ranks.
struct RankArguments {
  bool data_parallel = false;
  std::string reduction = "auto";
  int64_t bucket_bytes = DataParallelOptions().bucket_bytes;
  std::string overlap = "auto";
  bool shard_optimizer = false;
  bool sync_batch_norm = false;
  friend bool operator==(const RankArguments&, const RankArguments&) = default;
};

class Ranks {
 public:
  // Starts the ranks, which all of them do: MPI, the number of OpenMP threads (ThreadsOfRank), and
  // what ends all ranks if Python ends by an exception. A launcher may have started none; then this
  // process is alone. The caller holds the interpreter. Throws an Error (kFailedPrecondition) if
  // the ranks have started before, and what LaunchedRanks throws.
  //
  // When the process exits with status 0, it waits for all ranks; with another status, it ends
  // them. The exit of a child that the process has forked, and an exception that ends the child,
  // do neither.
  static void Start(double time_limit);
  // Returns the ranks. Starts them, with a default limit, unless they have started.
  static Ranks& The();
  // Prints the message, behind the rank's text once the ranks have started, and ends this process
  // and all other ranks; in a forked child, the child alone. The caller holds the interpreter.
  [[noreturn]] static void Abort(const std::string& message);

  const World& world() const { return world_; }
  // Returns whether this process is a child that the rank has forked.
  bool IsForkedChild() const { return process_ != getpid(); }
  // Returns nullptr if this process is alone.
  Communicator* communicator() const { return communicator_.get(); }
  // Returns how programs on `place` run on the ranks; alone, without a communicator. Throws an
  // Error (kInvalidArgument) for names that don't exist. Devices of the ranks are connected by the
  // first call, which all ranks make.
  DataParallelOptions Options(const RankArguments& arguments, Place place);

  // Does work in which this rank talks to others. Throws an Error (kFailedPrecondition) if another
  // thread does such work, and after work that has thrown: then this rank may have talked less than
  // the others. An AgreedError doesn't count, since all ranks throw it.
  template <typename Work>
  auto Do(const Work& work) {
    if (communicator_ == nullptr) return work();
    const Use use(this);
    try {
      return work();
    } catch (const training::AgreedError&) {
      throw;
    } catch (const std::exception& error) {
      failure_ = error.what();
      throw;
    }
  }

 private:
  // Work of a thread; a callback of the work may do other work.
  class Use {
   public:
    explicit Use(Ranks* ranks);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    Ranks& ranks_;
  };

  explicit Ranks(double time_limit);
  // Returns false if the ranks have started before.
  static bool StartNow(double time_limit);
  static void EndAtExit(int status, void* ranks);
  std::shared_ptr<Communicator> DeviceCommunicator(Place place);

  const double time_limit_;
  const pid_t process_ = getpid();
  std::shared_ptr<Communicator> communicator_;
  const World world_;
  std::map<int32_t, std::shared_ptr<Communicator>> of_devices_;  // by number
  std::string failure_;                                          // of earlier work
  std::mutex mutex_;                                             // of the two below
  std::thread::id user_;
  int32_t uses_ = 0;
};

// Returns how programs on `place` run: alone, unless the arguments say data_parallel. Throws what
// Ranks::Options throws, and an Error (kInvalidArgument) for other arguments without data_parallel.
DataParallelOptions OptionsOfRanks(const RankArguments& arguments, Place place);

// Returns the ranks that run programs with these options; nullptr for a program that runs alone.
Ranks* RanksOf(const DataParallelOptions& options);

// Does the work on the ranks (Ranks::Do); for nullptr, just does it.
template <typename Work>
auto DoOn(Ranks* ranks, const Work& work) {
  return ranks == nullptr ? work() : ranks->Do(work);
}

}  // namespace skiff::python
