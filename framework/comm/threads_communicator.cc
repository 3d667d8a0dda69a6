#include "framework/comm/threads_communicator.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/steady_seconds.h"
#include "framework/comm/message_checks.h"

namespace skiff {
namespace {

// A message on its way from one rank to another. The sender fills it and empties it again; in
// between, the receiver says how far it is.
struct Mail {
  enum class State { kNone, kSent, kInCopy, kTaken, kRefused };
  State state = State::kNone;
  const void* data = nullptr;
  int64_t bytes = 0;
  int64_t expected = 0;  // kRefused: the bytes that the receiver expects instead
};

// What the ranks share.
struct Hub {
  Hub(int32_t size, const ThreadRanksOptions& its_options)
      : options(its_options), mail(size, std::vector<Mail>(size)), ends(size) {}

  const ThreadRanksOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  // Guarded by the mutex.
  std::vector<std::vector<Mail>> mail;  // [sender][receiver]
  std::vector<std::string> ends;        // of each rank: why it has ended; "" while it hasn't
  std::string abort;                    // of the first rank that has aborted
};

class ThreadsCommunicator : public Communicator {
 public:
  ThreadsCommunicator(World world, std::shared_ptr<Hub> hub)
      : Communicator(std::move(world)),
        hub_(std::move(hub)),
        random_(hub_->options.seed + this->world().rank) {}
  ~ThreadsCommunicator() override { End("has ended"); }

  Place place() const override { return Place::Cpu(); }
  void Exchange(std::span<const OutMessage> out, std::span<const InMessage> in,
                DeviceStream* stream) override;
  void Sum(void* data, int64_t count, DType dtype, DeviceStream* stream) override;
  void Check() override;
  void Abort(const std::string& message) noexcept override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  // Sends and receives; ends the rank if that fails.
  void Move(std::span<const OutMessage> out, std::span<const InMessage> in);
  void Send(const OutMessage& message);
  // Sees to all open messages until there are none.
  void FinishOpen();
  // Receives an open message that has been sent. Returns whether there was one.
  bool ReceiveOne(Lock* lock);
  // Closes the sent messages that their receivers have answered. Returns whether there were any.
  bool CloseAnswered();
  // Takes back the messages that nobody has received. Waits for messages in copy.
  void Withdraw();

  // Waits until something may have changed. Throws if an awaited rank has ended, and after the
  // limit, a moment of SteadySeconds.
  void Wait(Lock* lock, double limit);
  // Returns the ranks that the open messages need, some twice. The mutex is locked.
  std::vector<int32_t> AwaitedRanks();
  double Limit() const { return SteadySeconds() + hub_->options.time_limit; }
  // Throws if a rank has aborted, or if this rank has ended. The mutex is locked.
  void CheckLocked();
  // Notes why the rank has ended; the first reason stays.
  void End(const std::string& reason);
  void Pause();

  template <typename T>
  void SumOf(T* data, int64_t count);
  // Returns the order in which a sum adds the ranks: the same on all ranks.
  std::vector<int32_t> SumOrder() const;

  Mail& MailTo(int32_t rank) { return hub_->mail[world().rank][rank]; }
  Mail& MailFrom(int32_t rank) { return hub_->mail[rank][world().rank]; }

  const std::shared_ptr<Hub> hub_;
  std::mt19937_64 random_;
  uint64_t sums_ = 0;  // calls of Sum
  // The messages of this call that are still open.
  std::vector<OutMessage> out_;
  std::vector<InMessage> in_;
};

void ThreadsCommunicator::Exchange(std::span<const OutMessage> out, std::span<const InMessage> in,
                                   DeviceStream* stream) {
  CheckNoStream(stream);
  CheckMessages(world(), out, in);
  Move(out, in);
  CountSent(out);
}

void ThreadsCommunicator::Move(std::span<const OutMessage> out, std::span<const InMessage> in) {
  Check();
  out_.assign(out.begin(), out.end());
  in_.assign(in.begin(), in.end());
  try {
    for (const OutMessage& message : out) Send(message);
    FinishOpen();
  } catch (const std::exception& error) {
    End(StrCat("has failed: ", error.what()));
    Withdraw();
    throw;
  }
}

void ThreadsCommunicator::Send(const OutMessage& message) {
  Pause();
  const std::lock_guard lock(hub_->mutex);
  MailTo(message.to) = {.state = Mail::State::kSent, .data = message.data, .bytes = message.bytes};
  hub_->changed.notify_all();
}

void ThreadsCommunicator::FinishOpen() {
  Lock lock(hub_->mutex);
  double limit = Limit();
  while (!out_.empty() || !in_.empty()) {
    if (ReceiveOne(&lock) || CloseAnswered()) {
      limit = Limit();
    } else {
      Wait(&lock, limit);
    }
  }
}

bool ThreadsCommunicator::ReceiveOne(Lock* lock) {
  const auto found = std::ranges::find_if(in_, [&](const InMessage& message) {
    return MailFrom(message.from).state == Mail::State::kSent;
  });
  if (found == in_.end()) return false;
  const InMessage message = *found;
  in_.erase(found);
  Mail& mail = MailFrom(message.from);
  mail.expected = message.bytes;
  const bool fits = mail.bytes == message.bytes;
  if (fits) {
    mail.state = Mail::State::kInCopy;
    lock->unlock();
    Pause();
    if (message.bytes > 0) std::memcpy(message.data, mail.data, message.bytes);
    lock->lock();
  }
  mail.state = fits ? Mail::State::kTaken : Mail::State::kRefused;
  hub_->changed.notify_all();
  SKIFF_ENFORCE(fits, kIo, MismatchText(message.from, mail.bytes, world().rank, message.bytes),
                ActivityText());
  return true;
}

bool ThreadsCommunicator::CloseAnswered() {
  const auto close = [&](const OutMessage& message) {
    Mail& mail = MailTo(message.to);
    SKIFF_ENFORCE(mail.state != Mail::State::kRefused, kIo,
                  MismatchText(world().rank, mail.bytes, message.to, mail.expected),
                  ActivityText());
    if (mail.state != Mail::State::kTaken) return false;
    mail = {};
    return true;
  };
  return std::erase_if(out_, close) > 0;
}

void ThreadsCommunicator::Withdraw() {
  Lock lock(hub_->mutex);
  for (const OutMessage& message : out_) {
    Mail& mail = MailTo(message.to);
    hub_->changed.wait(lock, [&] { return mail.state != Mail::State::kInCopy; });
    mail = {};
  }
}

void ThreadsCommunicator::Wait(Lock* lock, double limit) {
  // The limit may be infinite, which no clock of the library can be.
  constexpr double kLongestWait = 60;
  CheckLocked();
  const std::vector<int32_t> ranks = AwaitedRanks();
  for (const int32_t rank : ranks) {
    const std::string& end = hub_->ends[rank];
    SKIFF_ENFORCE(end.empty(), kIo, "rank ", rank, " ", end, "; ", world().Text(), " waits for it",
                  ActivityText());
  }
  const double left = limit - SteadySeconds();
  SKIFF_ENFORCE(left > 0, kIo, TimeLimitText(world(), hub_->options.time_limit, ranks),
                ActivityText());
  hub_->changed.wait_for(*lock, std::chrono::duration<double>(std::min(left, kLongestWait)));
}

std::vector<int32_t> ThreadsCommunicator::AwaitedRanks() {
  std::vector<int32_t> ranks;
  for (const InMessage& message : in_) ranks.push_back(message.from);
  for (const OutMessage& message : out_) ranks.push_back(message.to);
  return ranks;
}

void ThreadsCommunicator::Check() {
  const std::lock_guard lock(hub_->mutex);
  CheckLocked();
}

void ThreadsCommunicator::CheckLocked() {
  SKIFF_ENFORCE(hub_->abort.empty(), kIo, hub_->abort);
  const std::string& end = hub_->ends[world().rank];
  SKIFF_ENFORCE(end.empty(), kIo, world().Text(), " ", end);
}

void ThreadsCommunicator::End(const std::string& reason) {
  const std::lock_guard lock(hub_->mutex);
  std::string& end = hub_->ends[world().rank];
  if (end.empty()) end = reason;
  hub_->changed.notify_all();
}

void ThreadsCommunicator::Abort(const std::string& message) noexcept {
  world().Report(message);
  const std::lock_guard lock(hub_->mutex);
  if (hub_->abort.empty()) hub_->abort = StrCat(world().Text(), " has aborted: ", message);
  hub_->changed.notify_all();
}

void ThreadsCommunicator::Pause() {
  if (hub_->options.seed == 0) return;
  const uint64_t drawn = random_();
  if (drawn % 2 == 0) return;
  std::this_thread::sleep_for(std::chrono::microseconds(drawn / 2 % 200));
}

void ThreadsCommunicator::Sum(void* data, int64_t count, DType dtype, DeviceStream* stream) {
  CheckCpuSum(count, dtype, stream);
  if (dtype == DType::kFloat32) {
    SumOf(static_cast<float*>(data), count);
  } else {
    SumOf(static_cast<double*>(data), count);
  }
}

template <typename T>
void ThreadsCommunicator::SumOf(T* data, int64_t count) {
  const int32_t size = world().size;
  std::vector<T> all(size * count);
  std::vector<OutMessage> out;
  std::vector<InMessage> in;
  const int64_t bytes = count * sizeof(T);
  for (int32_t rank = 0; rank < size; ++rank) {
    out.push_back({.to = rank, .data = data, .bytes = bytes});
    in.push_back({.from = rank, .data = all.data() + rank * count, .bytes = bytes});
  }
  Move(out, in);
  const std::vector<int32_t> order = SumOrder();
  std::copy_n(all.data() + order[0] * count, count, data);
  for (int32_t k = 1; k < size; ++k) {
    const T* const summands = all.data() + order[k] * count;
    for (int64_t i = 0; i < count; ++i) data[i] += summands[i];
  }
  ++sums_;
}

std::vector<int32_t> ThreadsCommunicator::SumOrder() const {
  std::vector<int32_t> order(world().size);
  std::iota(order.begin(), order.end(), 0);
  const uint64_t seed = hub_->options.seed;
  if (seed == 0) return order;
  std::ranges::shuffle(order, std::mt19937_64(seed + sums_));
  return order;
}

}  // namespace

std::vector<std::shared_ptr<Communicator>> MakeThreadRanks(int32_t size,
                                                           const ThreadRanksOptions& options) {
  SKIFF_ENFORCE(size >= 1, kInvalidArgument, size, " ranks, expected at least 1");
  SKIFF_ENFORCE(options.time_limit > 0, kInvalidArgument, "time limit of ", options.time_limit,
                " s, expected more than 0");
  const auto hub = std::make_shared<Hub>(size, options);
  std::vector<std::shared_ptr<Communicator>> ranks;
  for (int32_t rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_shared<ThreadsCommunicator>(
        World{.rank = rank, .size = size, .local_rank = rank, .local_size = size}, hub));
  }
  return ranks;
}

}  // namespace skiff
