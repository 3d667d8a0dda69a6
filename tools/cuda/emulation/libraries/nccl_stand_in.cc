#include "tools/cuda/emulation/libraries/nccl_stand_in.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/comm/nccl_declarations.h"
#include "operators/common/half.h"
#include "tools/cuda/emulation/devices.h"
#include "tools/cuda/emulation/failures.h"
#include "tools/cuda/emulation/libraries/live_objects.h"
#include "tools/cuda/emulation/memory.h"
#include "tools/cuda/emulation/options.h"
#include "tools/cuda/emulation/streams.h"

namespace skiff::cuda_emulation {
namespace {

// ---- operations

enum class Kind { kSend, kReceive, kSum };

struct Operation {
  Kind kind;
  const void* in;  // of kSend and kSum
  void* out;       // of kReceive and kSum
  size_t count;
  int type;
  int peer;  // of messages
};

// Returns the bytes of a number; 0 for types that the stand-in lacks.
size_t BytesOf(int type) {
  switch (type) {
    case nccl::kUint8:
      return 1;
    case nccl::kFloat16:
    case nccl::kBFloat16:
      return 2;
    case nccl::kFloat32:
      return 4;
    case nccl::kFloat64:
      return 8;
    default:
      return 0;
  }
}

std::string Text(const Operation& operation) {
  std::ostringstream text;
  text << operation.count << " numbers of " << BytesOf(operation.type) << " bytes";
  switch (operation.kind) {
    case Kind::kSend:
      return "ncclSend to rank " + std::to_string(operation.peer) + ", " + text.str();
    case Kind::kReceive:
      return "ncclRecv from rank " + std::to_string(operation.peer) + ", " + text.str();
    case Kind::kSum:
      break;
  }
  return "ncclAllReduce, " + text.str();
}

bool IsSameSize(const Operation& a, const Operation& b) {
  return a.count == b.count && a.type == b.type;
}

// What a communicator gives to a stream as one piece of work: a sum, or messages.
struct Group {
  cudaStream_t stream = nullptr;
  std::vector<Operation> operations;
};

// ---- ranks

struct Clique;

// A communicator: a rank of a clique. Guarded by the mutex of all.
struct Rank {
  std::shared_ptr<Clique> clique;
  int number = 0;
  int device = 0;
  bool blocks = true;
  int result = nccl::kSuccess;  // ncclCommGetAsyncError's, when nothing is in progress
  bool ends = false;            // its work
  int polls = 0;                // calls of ncclCommGetAsyncError that still return ncclInProgress
  std::optional<Group> held;    // given to the stream when there are no more such calls
  bool is_finalized = false;
  uint64_t given = 0;  // groups, to streams
  uint64_t done = 0;
  std::vector<Operation> open;  // of the group that has begun on the device
};

// The ranks that have one id.
struct Clique {
  std::vector<std::shared_ptr<Rank>> ranks;  // by number; nullptr: hasn't come yet
  bool is_broken = false;                    // an operation has failed: none ends by itself

  bool is_complete() const { return std::ranges::count(ranks, nullptr) == 0; }
};

// Never destroyed.
struct All {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<uintptr_t, std::shared_ptr<Clique>> cliques;  // by the number in the id
  std::mt19937_64 random{TheOptions().seed};
  uint64_t begun = 0;  // groups, on devices
};

All& TheRanks() {
  static auto& all = *new All;
  return all;
}

thread_local std::string last_error;

int Refuse(int result, std::string why) {
  last_error = std::move(why);
  return result;
}

// For what NCCL wouldn't notice, too.
void Fail(Clique* clique, const std::string& what) {
  ReportFailure("NCCL: " + what);
  for (const std::shared_ptr<Rank>& rank : clique->ranks) {
    rank->result = nccl::kInvalidUsage;
    rank->ends = true;
  }
}

// Sums are added in an order of their own each time; with seed 0, in that of the ranks.
template <typename T>
void AddUp(const std::vector<Operation>& sums) {
  constexpr size_t kSameOrder = 64;
  const DeviceMemory& memory = DeviceMemory::Get();
  std::vector<const T*> from;
  for (const Operation& sum : sums) from.push_back(static_cast<const T*>(memory.Always(sum.in)));
  std::vector<size_t> order(sums.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<T> added(sums[0].count);
  for (size_t i = 0; i < added.size(); ++i) {
    if (i % kSameOrder == 0 && TheOptions().seed != 0) {
      std::ranges::shuffle(order, TheRanks().random);
    }
    added[i] = from[order[0]][i];
    for (size_t k = 1; k < order.size(); ++k) {
      using Wide = WideType<T>;
      added[i] = static_cast<T>(static_cast<Wide>(added[i]) + static_cast<Wide>(from[order[k]][i]));
    }
  }
  for (const Operation& sum : sums) {
    std::memcpy(memory.Always(sum.out), added.data(), added.size() * sizeof(T));
  }
}

void AddUp(const std::vector<Operation>& sums) {
  switch (sums[0].type) {
    case nccl::kFloat16:
      return AddUp<Float16>(sums);
    case nccl::kBFloat16:
      return AddUp<BFloat16>(sums);
    case nccl::kFloat32:
      return AddUp<float>(sums);
    default:
      return AddUp<double>(sums);
  }
}

bool IsInSum(const Rank& rank) {
  return !rank.open.empty() && rank.open.front().kind == Kind::kSum;
}

// Ends a sum that all ranks have come to. Returns whether there was one.
bool FinishSum(Clique* clique) {
  for (const std::shared_ptr<Rank>& rank : clique->ranks) {
    if (!IsInSum(*rank)) return false;
  }
  std::vector<Operation> sums;
  for (const std::shared_ptr<Rank>& rank : clique->ranks) {
    sums.push_back(rank->open.front());
    if (!IsSameSize(sums.front(), sums.back())) {
      Fail(clique, "rank 0 calls " + Text(sums.front()) + ", rank " + std::to_string(rank->number) +
                       " " + Text(sums.back()));
      return true;
    }
  }
  AddUp(sums);
  for (const std::shared_ptr<Rank>& rank : clique->ranks) rank->open.clear();
  return true;
}

// Takes a message out of a rank's open operations, if it is among them.
std::optional<Operation> TakeMessage(Rank* rank, Kind kind, int peer) {
  const auto found = std::ranges::find_if(rank->open, [&](const Operation& operation) {
    return operation.kind == kind && operation.peer == peer;
  });
  if (found == rank->open.end()) return std::nullopt;
  const Operation message = *found;
  rank->open.erase(found);
  return message;
}

bool HasMessage(const Rank& rank, Kind kind, int peer) {
  return std::ranges::any_of(rank.open, [&](const Operation& operation) {
    return operation.kind == kind && operation.peer == peer;
  });
}

// Moves the messages of a rank whose other ends have begun, too.
void FinishMessages(Clique* clique, Rank* from) {
  for (const std::shared_ptr<Rank>& to : clique->ranks) {
    while (HasMessage(*from, Kind::kSend, to->number) &&
           HasMessage(*to, Kind::kReceive, from->number)) {
      const Operation sent = *TakeMessage(from, Kind::kSend, to->number);
      const Operation received = *TakeMessage(to.get(), Kind::kReceive, from->number);
      if (!IsSameSize(sent, received)) {
        return Fail(clique, "rank " + std::to_string(from->number) + " calls " + Text(sent) +
                                ", rank " + std::to_string(to->number) + " " + Text(received));
      }
      const DeviceMemory& memory = DeviceMemory::Get();
      std::memcpy(memory.Always(received.out), memory.Always(sent.in),
                  sent.count * BytesOf(sent.type));
    }
  }
}

// Fails if all ranks wait: nobody will come.
void CheckSomebodyMayCome(Clique* clique) {
  std::string waits;
  for (const std::shared_ptr<Rank>& rank : clique->ranks) {
    if (rank->open.empty() || rank->ends) return;
    waits += (waits.empty() ? "rank " : ", rank ") + std::to_string(rank->number) + " in " +
             Text(rank->open.front());
  }
  Fail(clique, "all ranks wait: " + waits);
}

void FailOnDevice(Rank* failed) {
  failed->clique->is_broken = true;
  for (const std::shared_ptr<Rank>& rank : failed->clique->ranks) {
    rank->result = rank.get() == failed ? nccl::kSystemError : nccl::kRemoteError;
  }
}

// The work of a group in its stream. Groups run in the order in which they were given, whatever
// their streams.
void RunGroup(Rank* rank, const Group& group, uint64_t ticket) {
  DeviceMemory::Get().Close();
  All& all = TheRanks();
  std::unique_lock lock(all.mutex);
  all.changed.wait(lock, [&] { return rank->done == ticket || rank->ends; });
  Clique* const clique = rank->clique.get();
  if (!rank->ends) {
    rank->open = group.operations;
    if (++all.begun == TheOptions().nccl_fails_at) FailOnDevice(rank);
  }
  if (!rank->ends && !clique->is_broken) {
    if (!FinishSum(clique)) {
      for (const std::shared_ptr<Rank>& from : clique->ranks) FinishMessages(clique, from.get());
    }
    CheckSomebodyMayCome(clique);
    all.changed.notify_all();
  }
  all.changed.wait(lock, [&] { return rank->open.empty() || rank->ends; });
  rank->open.clear();
  ++rank->done;
  all.changed.notify_all();
}

// With the mutex, which is free meanwhile.
void GiveToStream(std::unique_lock<std::mutex>* lock, const std::shared_ptr<Rank>& rank,
                  Group group) {
  const uint64_t ticket = rank->given++;
  lock->unlock();
  const int outer = CurrentDevice();
  SetCurrentDevice(rank->device);
  const cudaStream_t stream = group.stream;
  const cudaError_t error = Give(
      stream, [rank, group = std::move(group), ticket] { RunGroup(rank.get(), group, ticket); });
  SetCurrentDevice(outer);
  if (error != cudaSuccess) Die("NCCL: a stream refuses work");
  lock->lock();
}

// ---- communicators

using Ranks = LiveObjects<std::shared_ptr<Rank>>;

// Returns the rank; nullptr, after a failure, if there is none.
std::shared_ptr<Rank> Find(nccl::Comm comm, const char* call) {
  if (const auto found = Ranks::Get(comm)) return *found;
  ReportFailure(std::string("NCCL: ") + call +
                ": a communicator that is none, or was destroyed or aborted");
  return nullptr;
}

int NoCommunicator() { return Refuse(nccl::kInvalidArgument, "no communicator"); }

// Whether a call has begun something that hasn't been done yet. With the mutex.
bool IsInProgress(const Rank& rank) {
  return !rank.clique->is_complete() || rank.polls > 0 || rank.held ||
         (rank.is_finalized && rank.done < rank.given);
}

int GetVersion(int* version) {
  *version = 22809;
  return nccl::kSuccess;
}

int GetUniqueId(nccl::UniqueId* id) {
  const uintptr_t number = NextObjectNumber();
  *id = {};
  std::memcpy(id->bytes, &number, sizeof(number));
  const std::lock_guard lock(TheRanks().mutex);
  TheRanks().cliques[number] = std::make_shared<Clique>();
  return nccl::kSuccess;
}

// Adds a rank to its clique. With the mutex.
int Join(const std::shared_ptr<Clique>& clique, int ranks, const std::shared_ptr<Rank>& rank) {
  if (clique->ranks.empty()) clique->ranks.resize(static_cast<size_t>(ranks));
  if (ranks < 1 || clique->ranks.size() != static_cast<size_t>(ranks) || rank->number < 0 ||
      rank->number >= ranks || clique->ranks[static_cast<size_t>(rank->number)] != nullptr) {
    return Refuse(nccl::kInvalidArgument, "a rank that there can't be, or is there already");
  }
  for (const std::shared_ptr<Rank>& other : clique->ranks) {
    if (other != nullptr && other->device == rank->device) {
      return Refuse(nccl::kInvalidUsage,
                    "Duplicate GPU detected: device " + std::to_string(rank->device));
    }
  }
  rank->clique = clique;
  clique->ranks[static_cast<size_t>(rank->number)] = rank;
  return nccl::kSuccess;
}

int Init(nccl::Comm* comm, int ranks, nccl::UniqueId id, int number, nccl::Config* config) {
  uintptr_t of_clique = 0;
  std::memcpy(&of_clique, id.bytes, sizeof(of_clique));
  const nccl::Config wanted;
  if (comm == nullptr || config == nullptr || config->magic != wanted.magic ||
      config->version != wanted.version || config->size != wanted.size) {
    return Refuse(nccl::kInvalidArgument, "a configuration that isn't initialized");
  }
  All& all = TheRanks();
  std::unique_lock lock(all.mutex);
  const auto clique = all.cliques.find(of_clique);
  if (clique == all.cliques.end()) return Refuse(nccl::kInvalidArgument, "an id of no clique");
  auto rank = std::make_shared<Rank>();
  rank->number = number;
  rank->device = CurrentDevice();
  rank->blocks = config->blocking != 0;
  const int result = Join(clique->second, ranks, rank);
  if (result != nccl::kSuccess) return result;
  Ranks::Make(comm, rank);
  all.changed.notify_all();
  if (!rank->blocks) {
    rank->polls = static_cast<int>(all.random() % 3);
    return nccl::kInProgress;
  }
  all.changed.wait(lock, [&] { return rank->clique->is_complete(); });
  return nccl::kSuccess;
}

int GetAsyncError(nccl::Comm comm, int* result) {
  const std::shared_ptr<Rank> rank = Find(comm, "ncclCommGetAsyncError");
  if (rank == nullptr) return NoCommunicator();
  std::unique_lock lock(TheRanks().mutex);
  if (rank->polls > 0 && rank->clique->is_complete() && --rank->polls == 0 && rank->held) {
    GiveToStream(&lock, rank, *std::exchange(rank->held, std::nullopt));
  }
  const bool has_failed = rank->result != nccl::kSuccess;
  *result = !has_failed && IsInProgress(*rank) ? nccl::kInProgress : rank->result;
  return nccl::kSuccess;
}

// Ends the communicator: the work that waits goes on, without its results.
int End(nccl::Comm comm, const char* call) {
  const std::shared_ptr<Rank> rank = Find(comm, call);
  if (rank == nullptr) return NoCommunicator();
  const std::lock_guard lock(TheRanks().mutex);
  rank->ends = true;
  Ranks::Destroy(comm);
  TheRanks().changed.notify_all();
  return nccl::kSuccess;
}

int Abort(nccl::Comm comm) { return End(comm, "ncclCommAbort"); }

int Destroy(nccl::Comm comm) {
  const std::shared_ptr<Rank> rank = Find(comm, "ncclCommDestroy");
  if (rank == nullptr) return NoCommunicator();
  {
    const std::lock_guard lock(TheRanks().mutex);
    if (!rank->is_finalized || IsInProgress(*rank)) {
      return Refuse(nccl::kInvalidUsage, "ncclCommDestroy before ncclCommFinalize has ended");
    }
  }
  return End(comm, "ncclCommDestroy");
}

int Finalize(nccl::Comm comm) {
  const std::shared_ptr<Rank> rank = Find(comm, "ncclCommFinalize");
  if (rank == nullptr) return NoCommunicator();
  std::unique_lock lock(TheRanks().mutex);
  if (IsInProgress(*rank)) return Refuse(nccl::kInvalidUsage, "the communicator is in progress");
  rank->is_finalized = true;
  if (!rank->blocks) return nccl::kInProgress;
  TheRanks().changed.wait(lock, [&] { return rank->done == rank->given || rank->ends; });
  return nccl::kSuccess;
}

const char* ErrorString(int result) {
  switch (result) {
    case nccl::kSuccess:
      return "no error";
    case nccl::kSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case nccl::kInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case nccl::kInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case nccl::kRemoteError:
      return "remote process exited or there was a network error";
    case nccl::kInProgress:
      return "NCCL operation in progress";
    default:
      return "unknown result code";
  }
}

const char* LastError(nccl::Comm) { return last_error.c_str(); }

// ---- groups

// The group that the calling thread is in.
struct OpenGroup {
  int depth = 0;
  std::map<std::shared_ptr<Rank>, Group> of_ranks;
  int result = nccl::kSuccess;  // of its calls
};

thread_local OpenGroup open_group;

// Gives a group to its stream, or keeps it until somebody has asked for the state.
int Issue(const std::shared_ptr<Rank>& rank, Group group) {
  All& all = TheRanks();
  std::unique_lock lock(all.mutex);
  if (!rank->blocks && all.random() % 2 == 0) {
    rank->held = std::move(group);
    rank->polls = 1 + static_cast<int>(all.random() % 3);
    return nccl::kInProgress;
  }
  GiveToStream(&lock, rank, std::move(group));
  return nccl::kSuccess;
}

int BeginGroup() {
  ++open_group.depth;
  return nccl::kSuccess;
}

int EndGroup() {
  if (open_group.depth == 0) return Refuse(nccl::kInvalidUsage, "ncclGroupEnd without a group");
  if (--open_group.depth > 0) return nccl::kSuccess;
  OpenGroup group = std::exchange(open_group, {});
  int result = group.result;
  if (result != nccl::kSuccess) return result;
  for (auto& [rank, of_rank] : group.of_ranks) {
    const int issued = Issue(rank, std::move(of_rank));
    if (issued != nccl::kSuccess) result = issued;
  }
  return result;
}

// Adds an operation to the thread's group.
int AddToGroup(const std::shared_ptr<Rank>& rank, const Operation& operation, cudaStream_t stream) {
  Group& group = open_group.of_ranks[rank];
  const bool fits = group.operations.empty() ||
                    (operation.kind != Kind::kSum && group.operations.front().kind != Kind::kSum &&
                     stream == group.stream);
  if (!fits) {
    return Refuse(nccl::kInvalidUsage,
                  "a group with sums and messages, several sums, or several streams");
  }
  group.stream = stream;
  group.operations.push_back(operation);
  return nccl::kSuccess;
}

int CheckOperation(const Rank& rank, const Operation& operation, cudaStream_t stream) {
  {
    const std::lock_guard lock(TheRanks().mutex);
    if (IsInProgress(rank)) return Refuse(nccl::kInvalidUsage, "the communicator is in progress");
    if (rank.result != nccl::kSuccess) return Refuse(rank.result, "an operation has failed");
  }
  const int ranks = static_cast<int>(rank.clique->ranks.size());
  if (operation.kind != Kind::kSum &&
      (operation.peer < 0 || operation.peer >= ranks || operation.peer == rank.number)) {
    return Refuse(nccl::kInvalidArgument, "a message of rank " + std::to_string(rank.number) +
                                              " and rank " + std::to_string(operation.peer));
  }
  const size_t bytes = operation.count * BytesOf(operation.type);
  const bool is_added = operation.kind == Kind::kSum;
  if (BytesOf(operation.type) == 0 || (is_added && operation.type == nccl::kUint8)) {
    return Refuse(nccl::kInvalidArgument, "a type that the stand-in lacks");
  }
  if (DeviceOfStream(stream) != rank.device) {
    return Refuse(nccl::kInvalidArgument, "a stream of another device");
  }
  const bool is_of_device = std::ranges::all_of(
      std::initializer_list<const void*>{operation.in, operation.out}, [&](const void* memory) {
        return memory == nullptr || DeviceMemory::Get().Holds(rank.device, memory, bytes);
      });
  const bool is_there = (operation.in != nullptr || operation.kind == Kind::kReceive) &&
                        (operation.out != nullptr || operation.kind == Kind::kSend);
  if (bytes > 0 && !(is_of_device && is_there)) {
    return Refuse(nccl::kInvalidArgument,
                  "memory that isn't of device " + std::to_string(rank.device));
  }
  return nccl::kSuccess;
}

// Does a call: alone, it is a group of its own.
int Call(nccl::Comm comm, const char* call, const Operation& operation, cudaStream_t stream) {
  const std::shared_ptr<Rank> rank = Find(comm, call);
  int result = rank == nullptr ? NoCommunicator() : CheckOperation(*rank, operation, stream);
  const bool is_alone = open_group.depth == 0;
  if (is_alone) BeginGroup();
  if (result == nccl::kSuccess) result = AddToGroup(rank, operation, stream);
  if (result != nccl::kSuccess) open_group.result = result;
  return is_alone ? EndGroup() : result;
}

int Send(const void* data, size_t count, int type, int peer, nccl::Comm comm, CUstream_st* stream) {
  return Call(comm, "ncclSend", {Kind::kSend, data, nullptr, count, type, peer}, stream);
}

int Receive(void* data, size_t count, int type, int peer, nccl::Comm comm, CUstream_st* stream) {
  return Call(comm, "ncclRecv", {Kind::kReceive, nullptr, data, count, type, peer}, stream);
}

int AllReduce(const void* in, void* out, size_t count, int type, int operation, nccl::Comm comm,
              CUstream_st* stream) {
  if (operation != nccl::kSum) return Refuse(nccl::kInvalidArgument, "another operation than sum");
  return Call(comm, "ncclAllReduce", {Kind::kSum, in, out, count, type, -1}, stream);
}

// The address of a function that has the type of the library's.
template <class Function>
void* AddressOf(std::type_identity_t<Function>* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void* NcclFunction(std::string_view name) {
  if (!TheOptions().has_nccl) return nullptr;
  const struct {
    std::string_view name;
    void* address;
  } functions[] = {
      {"ncclGetVersion", AddressOf<nccl::GetVersionFunction>(GetVersion)},
      {"ncclGetUniqueId", AddressOf<nccl::GetUniqueIdFunction>(GetUniqueId)},
      {"ncclCommInitRankConfig", AddressOf<nccl::InitFunction>(Init)},
      {"ncclCommFinalize", AddressOf<nccl::CommFunction>(Finalize)},
      {"ncclCommDestroy", AddressOf<nccl::CommFunction>(Destroy)},
      {"ncclCommAbort", AddressOf<nccl::CommFunction>(Abort)},
      {"ncclCommGetAsyncError", AddressOf<nccl::AsyncErrorFunction>(GetAsyncError)},
      {"ncclGetErrorString", AddressOf<nccl::ErrorStringFunction>(ErrorString)},
      {"ncclGetLastError", AddressOf<nccl::LastErrorFunction>(LastError)},
      {"ncclGroupStart", AddressOf<nccl::GroupFunction>(BeginGroup)},
      {"ncclGroupEnd", AddressOf<nccl::GroupFunction>(EndGroup)},
      {"ncclSend", AddressOf<nccl::SendFunction>(Send)},
      {"ncclRecv", AddressOf<nccl::ReceiveFunction>(Receive)},
      {"ncclAllReduce", AddressOf<nccl::AllReduceFunction>(AllReduce)},
  };
  for (const auto& function : functions) {
    if (function.name == name) return function.address;
  }
  return nullptr;
}

}  // namespace skiff::cuda_emulation
