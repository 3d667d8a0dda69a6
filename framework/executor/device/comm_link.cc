#include "framework/executor/device/comm_link.h"

#include <omp.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/communicator.h"
#include "framework/comm/rank_resources.h"
#include "framework/executor/device/rank_wait.h"

namespace skiff {
namespace {

class CommThread final : public CommLink {
 public:
  ~CommThread() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    issued_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  DeviceContext context() const override { return {}; }

  void Issue(Work work, bool /*follows_main*/) override {
    // A program that never gets here needs no thread. Before the work, which then would wait.
    if (!thread_.joinable()) StartThread();
    {
      const std::lock_guard lock(mutex_);
      works_.push_back(std::move(work));
    }
    issued_.notify_one();
  }

  void Await(size_t count) override {
    if (ended_.load(std::memory_order_acquire) < count) {
      std::unique_lock lock(mutex_);
      has_ended_.wait(lock, [&] { return ended_ >= count; });
    }
    // What has failed later is thrown by the wait for that.
    if (failed_.load(std::memory_order_acquire) < count) std::rethrow_exception(failure_);
  }

  void Finish() override {
    Await(works_.size());
    Forget();
  }

  void WaitQuietly() noexcept override {
    std::unique_lock lock(mutex_);
    has_ended_.wait(lock, [&] { return ended_ == works_.size(); });
    lock.unlock();
    Forget();
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  void StartThread() {
    try {
      thread_ = std::thread([this] { RunAll(); });
    } catch (const std::system_error& error) {
      Throw(ErrorCode::kResourceExhausted, "no thread for collective ops: ", error.what());
    }
  }

  void RunAll() {
    omp_set_num_threads(1);
    std::unique_lock lock(mutex_);
    while (true) {
      issued_.wait(lock, [&] { return ends_ || ended_ < works_.size(); });
      if (ended_ == works_.size()) return;
      const Work work = std::move(works_[ended_]);
      lock.unlock();
      if (failed_ == kNone) RunOne(work);
      lock.lock();
      ended_.store(ended_ + 1, std::memory_order_release);
      has_ended_.notify_one();
    }
  }

  void RunOne(const Work& work) {
    try {
      work();
    } catch (...) {
      failure_ = std::current_exception();
      failed_.store(ended_, std::memory_order_release);
    }
  }

  // While the thread is idle.
  void Forget() {
    const std::lock_guard lock(mutex_);
    works_.clear();
    ended_ = 0;
    failed_ = kNone;
    failure_ = nullptr;
  }

  std::mutex mutex_;
  std::condition_variable issued_;
  std::condition_variable has_ended_;
  std::vector<Work> works_;  // since Forget; with the mutex
  bool ends_ = false;        // with the mutex
  std::atomic<size_t> ended_ = 0;
  std::atomic<size_t> failed_ = kNone;  // the first that did
  std::exception_ptr failure_;          // before failed_ says so, the thread's alone
  std::thread thread_;
};

class CommStream final : public CommLink {
 public:
  CommStream(DeviceLink* link, std::shared_ptr<Communicator> communicator)
      : link_(*link),
        communicator_(std::move(communicator)),
        main_is_there_(link->MakeEvent()),
        all_ended_(link->MakeEvent()),
        stream_(link->device().MakeStream()) {}
  ~CommStream() override { WaitQuietly(); }

  DeviceContext context() const override { return {link_.place(), stream_.get()}; }

  void Issue(Work work, bool follows_main) override {
    // The main stream may have work from before the run.
    if (follows_main || issued_ == 0) {
      link_.Record(main_is_there_.get());
      stream_->WaitFor(*main_is_there_);
    }
    if (issued_ == ends_.size()) ends_.push_back(link_.MakeEvent());
    // Also counts work that fails: some of it may be in the stream.
    ++issued_;
    work();
    stream_->Record(ends_[issued_ - 1].get());
  }

  void Await(size_t count) override {
    if (count > awaited_) link_.stream().WaitFor(*ends_[count - 1]);
    awaited_ = std::max(awaited_, count);
  }

  void Finish() override {
    Await(issued_);
    issued_ = awaited_ = 0;
  }

  void WaitQuietly() noexcept override {
    // Another Error is under way. If a rank doesn't come any more, the work ends all the same.
    Quietly([this] {
      if (communicator_ == nullptr) return;
      stream_->Record(all_ended_.get());
      AwaitEvent(all_ended_.get(), communicator_.get());
    });
    Quietly([this] { stream_->Wait(); });
    issued_ = awaited_ = 0;
  }

 private:
  template <typename Wait>
  static void Quietly(const Wait& wait) noexcept {
    try {
      wait();
    } catch (const Error&) {
      // As WaitQuietly says.
    }
  }

  DeviceLink& link_;
  const std::shared_ptr<Communicator> communicator_;
  const std::unique_ptr<DeviceEvent> main_is_there_;
  const std::unique_ptr<DeviceEvent> all_ended_;
  std::vector<std::unique_ptr<DeviceEvent>> ends_;  // of each piece of work
  size_t issued_ = 0;
  size_t awaited_ = 0;
  const std::unique_ptr<DeviceStream> stream_;
};

}  // namespace

std::unique_ptr<CommLink> MakeCommLink(DeviceLink* link, std::shared_ptr<Communicator> of_device) {
  if (link->has_device()) return std::make_unique<CommStream>(link, std::move(of_device));
  return std::make_unique<CommThread>();
}

bool OverlapsCollectives(const DataParallelOptions& options, Place place) {
  constexpr int32_t kFewestCores = 4;
  if (options.communicator == nullptr || options.overlap == Overlap::kOff) return false;
  const World& world = options.communicator->world();
  if (world.size == 1) return false;
  if (!place.is_cpu()) return true;
  return options.overlap == Overlap::kOn || CoresOfRank(world) >= kFewestCores;
}

}  // namespace skiff
