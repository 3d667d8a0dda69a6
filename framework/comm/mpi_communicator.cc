// A message travels in pieces, since MPI counts in 31 bits, and since the end of a piece is
// progress that the time limit sees. The tag of a piece says how many pieces follow, so a receiver
// notices at the first piece if the sender has other pieces in mind.
#include "framework/comm/mpi_communicator.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/base/error.h"
#include "framework/comm/load_mpi_plugin.h"
#include "framework/comm/message_checks.h"
#include "framework/comm/polling.h"

namespace skiff {
namespace {

constexpr int64_t kPieceBytes = int64_t{16} << 20;

// Returns how many pieces follow the piece at `offset`, as its tag says it.
int32_t FollowingPieces(int64_t bytes, int64_t offset) {
  constexpr int64_t kLargestTag = 32767;
  const int64_t left = std::max<int64_t>(bytes - offset - 1, 0);
  return static_cast<int32_t>(std::min(left / kPieceBytes, kLargestTag));
}

// What a request of the plug-in is about.
struct Request {
  enum class Kind { kSend, kReceive, kAllRanks };
  Kind kind;
  int32_t rank = 0;  // the other rank
  // kReceive:
  int64_t message_bytes = 0;
  int64_t offset = 0;  // of this piece in the message
  int32_t piece_bytes = 0;
  int32_t following = 0;  // pieces after this one
  bool has_ended = false;
};

// MPI in this process. The exit of the process looks at it, when the communicator may be gone.
struct Process {
  const MpiPlugin& plugin;
  const World world;
  const pid_t id;
};
Process* running = nullptr;  // from the start of MPI to its end

// Whether this process is a child that the rank has forked. MPI isn't its own.
bool IsForkedChild() { return running != nullptr && running->id != getpid(); }

// Ends all ranks and this process.
[[noreturn]] void AbortAll(const MpiPlugin& plugin) {
  std::fflush(stdout);
  running = nullptr;  // MPI may leave by exit().
  plugin.abort(1);
  std::_Exit(1);
}

void AbortAtExit() {
  if (running == nullptr || IsForkedChild()) return;
  running->world.Report("exits before all ranks have ended");
  AbortAll(running->plugin);
}

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(World world, const MpiPlugin& plugin, double time_limit)
      : Communicator(std::move(world)),
        plugin_(plugin),
        time_limit_(time_limit),
        exceptions_(std::uncaught_exceptions()) {}
  ~MpiCommunicator() override;

  Place place() const override { return Place::Cpu(); }
  void Exchange(std::span<const OutMessage> out, std::span<const InMessage> in,
                DeviceStream* stream) override;
  void Sum(void* data, int64_t count, DType dtype, DeviceStream* stream) override;
  void Check() override;
  void Abort(const std::string& message) noexcept override;

 private:
  void Send(const OutMessage& message);
  void Receive(const InMessage& message);
  // Takes note of a request that a call of the plug-in has begun.
  void Begin(const char* failure, const Request& request);
  // Runs `begin`, which begins requests, and waits for the end of all. If that fails, the rank
  // fails.
  template <typename BeginAll>
  void Run(double time_limit, const BeginAll& begin);
  void Await(double time_limit);
  // Returns how many requests have ended now.
  int32_t SeeEnds();
  void CheckReceived(const MpiEnd& end) const;
  [[noreturn]] void ThrowAtLimit() const;
  void ThrowFailure(const char* failure) const;

  const MpiPlugin& plugin_;
  const double time_limit_;
  const int exceptions_;  // in flight when MPI started
  std::string failure_;   // of an earlier call
  std::vector<Request> requests_;
  std::vector<MpiEnd> ends_;
};

MpiCommunicator::~MpiCommunicator() {
  if (std::uncaught_exceptions() > exceptions_ || IsForkedChild()) return;
  if (!failure_.empty()) Abort(failure_);
  try {
    Run(std::numeric_limits<double>::infinity(),
        [&] { Begin(plugin_.meet(), {.kind = Request::Kind::kAllRanks}); });
    delete std::exchange(running, nullptr);
    ThrowFailure(plugin_.finish());
  } catch (const Error& error) {
    Abort(error.what());
  }
}

void MpiCommunicator::Exchange(std::span<const OutMessage> out, std::span<const InMessage> in,
                               DeviceStream* stream) {
  CheckNoStream(stream);
  CheckMessages(world(), out, in);
  Check();
  Run(time_limit_, [&] {
    // Receives first: a message that finds its receive is copied once less.
    for (const InMessage& message : in) {
      if (message.from != world().rank) Receive(message);
    }
    for (const OutMessage& message : out) {
      if (message.to != world().rank) Send(message);
    }
    CopyOwnMessage(world(), out, in);
  });
  CountSent(out);
}

void MpiCommunicator::Send(const OutMessage& message) {
  int64_t offset = 0;
  do {
    const int32_t bytes = std::min(message.bytes - offset, kPieceBytes);
    const int32_t following = FollowingPieces(message.bytes, offset);
    Begin(
        plugin_.send(static_cast<const char*>(message.data) + offset, bytes, message.to, following),
        {.kind = Request::Kind::kSend, .rank = message.to});
    offset += bytes;
  } while (offset < message.bytes);
}

void MpiCommunicator::Receive(const InMessage& message) {
  int64_t offset = 0;
  do {
    const int32_t bytes = std::min(message.bytes - offset, kPieceBytes);
    Begin(plugin_.receive(static_cast<char*>(message.data) + offset, bytes, message.from),
          {.kind = Request::Kind::kReceive,
           .rank = message.from,
           .message_bytes = message.bytes,
           .offset = offset,
           .piece_bytes = bytes,
           .following = FollowingPieces(message.bytes, offset)});
    offset += bytes;
  } while (offset < message.bytes);
}

void MpiCommunicator::Sum(void* data, int64_t count, DType dtype, DeviceStream* stream) {
  CheckCpuSum(count, dtype, stream);
  Check();
  const int64_t size = SizeOf(dtype);
  for (int64_t begin = 0; begin < count; begin += kPieceBytes / size) {
    const int64_t piece = std::min(count - begin, kPieceBytes / size);
    Run(time_limit_, [&] {
      Begin(plugin_.sum(static_cast<char*>(data) + begin * size, piece, size),
            {.kind = Request::Kind::kAllRanks});
    });
  }
}

void MpiCommunicator::Begin(const char* failure, const Request& request) {
  ThrowFailure(failure);
  requests_.push_back(request);
}

template <typename BeginAll>
void MpiCommunicator::Run(double time_limit, const BeginAll& begin) {
  requests_.clear();
  try {
    begin();
    Await(time_limit);
  } catch (const std::exception& error) {
    failure_ = error.what();
    plugin_.cancel();
    throw;
  }
}

void MpiCommunicator::Await(double time_limit) {
  ends_.resize(requests_.size());
  Polling polling(time_limit);
  for (size_t open = requests_.size(); open > 0;) {
    const int32_t ended = SeeEnds();
    open -= ended;
    if (ended > 0) {
      polling.Restart();
    } else if (!polling.Wait()) {
      ThrowAtLimit();
    }
  }
}

int32_t MpiCommunicator::SeeEnds() {
  int32_t count = 0;
  ThrowFailure(plugin_.test(ends_.data(), &count));
  for (const MpiEnd& end : std::span(ends_).first(count)) {
    requests_[end.request].has_ended = true;
    if (requests_[end.request].kind == Request::Kind::kReceive) CheckReceived(end);
  }
  return count;
}

void MpiCommunicator::CheckReceived(const MpiEnd& end) const {
  const Request& request = requests_[end.request];
  const bool is_longer = end.is_truncated != 0 || end.tag > request.following;
  const bool is_shorter = end.tag < request.following || end.bytes < request.piece_bytes;
  if (!is_longer && !is_shorter) return;
  const int32_t rank = world().rank;
  const bool is_last = end.is_truncated == 0 && end.tag == 0;
  Throw(ErrorCode::kIo,
        is_last
            ? MismatchText(request.rank, request.offset + end.bytes, rank, request.message_bytes)
            : StrCat("rank ", request.rank, " sends ", is_longer ? "more" : "fewer",
                     " bytes to rank ", rank, " than it expects, ", request.message_bytes),
        ActivityText());
}

void MpiCommunicator::ThrowAtLimit() const {
  std::vector<int32_t> ranks;
  for (const Request& request : requests_) {
    if (!request.has_ended && request.kind != Request::Kind::kAllRanks) {
      ranks.push_back(request.rank);
    }
  }
  Throw(ErrorCode::kIo, TimeLimitText(world(), time_limit_, ranks), ActivityText());
}

void MpiCommunicator::ThrowFailure(const char* failure) const {
  SKIFF_ENFORCE(failure == nullptr, kIo, world().Text(), ": ", failure, ActivityText());
}

void MpiCommunicator::Check() {
  SKIFF_ENFORCE(failure_.empty(), kIo, world().Text(), " has failed: ", failure_);
}

void MpiCommunicator::Abort(const std::string& message) noexcept {
  world().Report(message);
  AbortAll(plugin_);
}

}  // namespace

std::shared_ptr<Communicator> StartMpi(double time_limit) {
  SKIFF_ENFORCE(time_limit > 0, kInvalidArgument, "time limit of ", time_limit,
                " s, expected more than 0");
  SKIFF_ENFORCE(running == nullptr, kFailedPrecondition, "MPI has started in this process already");
  const MpiPlugin& plugin = LoadMpiPlugin();
  MpiWorld found = {};
  const char* const failure = plugin.start(&found);
  SKIFF_ENFORCE(failure == nullptr, kIo, "MPI can't start: ", failure);
  const World world = {.rank = found.rank,
                       .size = found.size,
                       .local_rank = found.local_rank,
                       .local_size = found.local_size,
                       .host = found.host};
  running = new Process{.plugin = plugin, .world = world, .id = getpid()};
  std::atexit(AbortAtExit);
  return std::make_shared<MpiCommunicator>(world, plugin, time_limit);
}

}  // namespace skiff
