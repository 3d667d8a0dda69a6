#include "tools/cuda/emulation/block.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <sstream>

#include "tools/cuda/emulation/device.h"
#include "tools/cuda/emulation/failures.h"
#include "tools/cuda/emulation/options.h"

namespace skiff::cuda_emulation {
namespace {

constinit thread_local uint3 thread_index{};
constinit thread_local uint3 block_index{};
constinit thread_local dim3 block_size{};
constinit thread_local dim3 grid_size{};

// What a kernel may have without asking for more. Of the emulation's memory, gaps take a part, too.
constexpr size_t kMostSharedBytes = size_t{48} << 10;
constexpr size_t kSharedMemoryBytes = size_t{227} << 10;
// Behind each shared variable, so that an index that is a bit too large finds nothing.
constexpr size_t kSharedGap = 128;

std::string Text(uint3 index) {
  std::ostringstream text;
  text << "(" << index.x << ", " << index.y << ", " << index.z << ")";
  return text.str();
}

uint3 ThreadIndex(int thread, dim3 block) {
  const auto linear = static_cast<unsigned>(thread);
  if (block.y == 1 && block.z == 1) return {linear, 0, 0};
  return {linear % block.x, linear / block.x % block.y, linear / block.x / block.y};
}

std::string Text(Where where) {
  std::ostringstream text;
  text << where.file_name() << ":" << where.line() << ":" << where.column();
  return text.str();
}

// Most equal texts have one address.
bool IsSame(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }

bool IsSame(Where a, Where b) {
  return a.line() == b.line() && a.column() == b.column() && IsSame(a.file_name(), b.file_name());
}

uint64_t Mixed(uint64_t value) {
  value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
  value = (value ^ value >> 27) * 0x94D049BB133111EB;
  return value ^ value >> 31;
}

}  // namespace

constinit thread_local Block* Block::running_block_ = nullptr;

uint64_t Block::Random() { return Mixed(random_ += 0x9E3779B97F4A7C15); }

void Block::Shuffle(std::vector<int>* threads) {
  if (!is_shuffled_) return;
  for (size_t i = threads->size(); i > 1; --i)
    std::swap((*threads)[i - 1], (*threads)[Random() % i]);
}

bool Block::Run(const KernelCall& call, int device, uint3 index, uint64_t seed) {
  call_ = &call;
  device_ = device;
  arguments_ = call.arguments.get();
  is_shuffled_ = seed != 0;
  random_ = seed;
  has_failed_ = false;
  const dim3 size = call.shape.block;
  const size_t count = size_t{size.x} * size.y * size.z;
  threads_.assign(count, {});
  order_.resize(count);
  std::iota(order_.begin(), order_.end(), 0);
  Shuffle(&order_);
  begun_ = ended_ = at_barrier_ = 0;
  ready_.clear();
  variables_.clear();
  warp_epochs_.assign((count + kLanes - 1) / kLanes, 0);
  waiting_lanes_.assign(warp_epochs_.size(), 0);
  races_.BeginBlock();
  if (shared_ == nullptr) {
    shared_.reset(static_cast<unsigned char*>(std::aligned_alloc(kSharedGap, kSharedMemoryBytes)));
  }
  shared_bytes_ = call.shape.shared_bytes;
  // Not-a-number, until somebody writes.
  std::memset(shared_.get(), 0xFF, shared_bytes_);
  block_index = index;
  block_size = size;
  grid_size = call.shape.grid;
  running_block_ = this;
  Schedule();
  running_block_ = nullptr;
  return !has_failed_;
}

void Block::Schedule() {
  while (!has_failed_) {
    const bool may_begin = begun_ < threads_.size();
    if (!ready_.empty() && !(may_begin && is_shuffled_ && Random() % 2 == 0)) {
      const int thread = ready_.back();
      ready_.pop_back();
      Resume(thread);
    } else if (may_begin) {
      if (free_fibers_.empty()) {
        free_fibers_.push_back(&fibers_.emplace_back());
        free_fibers_.back()->Start(FiberMain);
      }
      Fiber* fiber = free_fibers_.back();
      free_fibers_.pop_back();
      SwitchTo(fiber);
    } else if (ended_ == threads_.size()) {
      return;
    } else if (at_barrier_ == threads_.size()) {
      ReleaseBarrier();
    } else {
      Report(WhyStuck());
    }
  }
  // What its threads were at is forgotten.
  free_fibers_.clear();
  for (Fiber& fiber : fibers_) {
    fiber.Start(FiberMain);
    free_fibers_.push_back(&fiber);
  }
}

void Block::FiberMain() {
  Fiber::Arrive();
  running_block_->RunThreads();
}

// Begins threads until one of them waits, which is then what the stack is for.
void Block::RunThreads() {
  Fiber* const fiber = fiber_;
  for (;;) {
    while (begun_ < threads_.size()) {
      const int thread = order_[begun_++];
      Begin(thread);
      threads_[static_cast<size_t>(thread)].fiber = fiber;
      call_->Run();
      threads_[static_cast<size_t>(running_)].state = State::kEnded;
      ++ended_;
    }
    free_fibers_.push_back(fiber);
    fiber->SwitchTo(&scheduler_);
  }
}

void Block::Begin(int thread) {
  running_ = thread;
  thread_index = ThreadIndex(thread, call_->shape.block);
  threads_[static_cast<size_t>(thread)].state = State::kReady;
}

void Block::Resume(int thread) {
  Begin(thread);
  SwitchTo(threads_[static_cast<size_t>(thread)].fiber);
}

void Block::SwitchTo(Fiber* fiber) {
  fiber_ = fiber;
  stack_ = fiber->stack();
  scheduler_.SwitchTo(fiber);
}

void Block::Wait() { fiber_->SwitchTo(&scheduler_); }

void Block::SyncThreads(Where where) {
  Thread& thread = threads_[static_cast<size_t>(running_)];
  thread.state = State::kAtBarrier;
  thread.where = where;
  ++at_barrier_;
  Wait();
}

void Block::ReleaseBarrier() {
  const Where where = threads_.front().where;
  for (size_t i = 0; i < threads_.size(); ++i) {
    const Where other = threads_[i].where;
    if (!IsSame(where, other)) {
      Report(Describe(0) + ", but " + Describe(static_cast<int>(i)) + " of other code");
      return;
    }
  }
  races_.PassBarrier();
  at_barrier_ = 0;
  ready_ = order_;
  std::reverse(ready_.begin(), ready_.end());
  Shuffle(&ready_);
}

void Block::Exchange(unsigned mask, const char* function, const void* value, size_t bytes, int lane,
                     void* result, Where where) {
  Thread& thread = threads_[static_cast<size_t>(running_)];
  if (bytes > kValueBytes) {
    StopChecks();
    Fail(std::string(function) + ": a value of more than 8 bytes");
  }
  thread.where = where;
  if ((mask >> LaneId() & 1) == 0) {
    StopChecks();
    std::ostringstream text;
    text << function << " at " << Text(where) << ": its mask " << std::hex << mask
         << " lacks the lane itself";
    Fail(text.str());
  }
  thread.function = function;
  thread.mask = mask;
  thread.lane = lane;
  thread.result = result;
  std::memcpy(thread.value, value, bytes);
  thread.state = State::kInWarp;
  const int first = running_ - static_cast<int>(LaneId());
  unsigned& waiting = waiting_lanes_[static_cast<size_t>(first) / kLanes];
  waiting |= 1U << LaneId();
  bool is_complete = (waiting & mask) == mask;
  for (unsigned i = 0; is_complete && i < kLanes; ++i) {
    is_complete = (mask >> i & 1) == 0 || IsInExchange(first + static_cast<int>(i), mask, function);
  }
  if (!is_complete) {
    Wait();
    return;
  }
  waiting &= ~mask;
  // What a shuffle gives is ordered, but not memory.
  if (IsSame(function, "__syncwarp")) ++warp_epochs_[static_cast<size_t>(first) / kLanes];
  Deliver(first, mask, bytes);
}

bool Block::IsInExchange(int thread, unsigned mask, const char* function) const {
  if (thread >= static_cast<int>(threads_.size())) return false;
  const Thread& other = threads_[static_cast<size_t>(thread)];
  return other.state == State::kInWarp && other.mask == mask && IsSame(other.function, function);
}

void Block::Deliver(int first_of_warp, unsigned mask, size_t bytes) {
  const auto give = [&](unsigned lane, unsigned char* to) {
    std::memset(to, 0xFF, bytes);
    if ((mask >> lane & 1) == 0) return;
    std::memcpy(to, threads_[static_cast<size_t>(first_of_warp) + lane].value, bytes);
  };
  woken_.clear();
  for (unsigned i = 0; i < kLanes; ++i) {
    if ((mask >> i & 1) == 0) continue;
    const int index = first_of_warp + static_cast<int>(i);
    Thread& thread = threads_[static_cast<size_t>(index)];
    auto* result = static_cast<unsigned char*>(thread.result);
    if (thread.lane >= 0) {
      give(static_cast<unsigned>(thread.lane) % kLanes, result);
    } else {
      for (unsigned lane = 0; lane < kLanes; ++lane) give(lane, result + lane * bytes);
    }
    thread.state = State::kReady;
    if (index != running_) woken_.push_back(index);
  }
  std::reverse(woken_.begin(), woken_.end());
  Shuffle(&woken_);
  ready_.insert(ready_.end(), woken_.begin(), woken_.end());
}

void* Block::Shared(const void* key, size_t bytes, const char* name) {
  for (const SharedVariable& variable : variables_) {
    if (variable.key == key) return shared_.get() + variable.begin;
  }
  const size_t begin = (shared_bytes_ + kSharedGap + kSharedGap - 1) / kSharedGap * kSharedGap;
  size_t wanted = call_->shape.shared_bytes + bytes;
  for (const SharedVariable& variable : variables_) wanted += variable.bytes;
  if (wanted > kMostSharedBytes || begin + bytes + kSharedGap > kSharedMemoryBytes) {
    StopChecks();
    std::ostringstream text;
    text << name << " makes it " << wanted << " bytes of shared memory, expected at most "
         << kMostSharedBytes;
    Fail(text.str());
  }
  variables_.push_back({key, name, begin, bytes});
  std::memset(shared_.get() + shared_bytes_, 0xFF, begin + bytes + kSharedGap - shared_bytes_);
  shared_bytes_ = begin + bytes;
  return shared_.get() + begin;
}

std::string Block::SharedNear(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto begin = reinterpret_cast<uintptr_t>(shared_.get());
  if (at < begin || at >= begin + kSharedMemoryBytes) return {};
  std::ostringstream text;
  const size_t offset = at - begin;
  const SharedVariable* nearest = nullptr;
  for (const SharedVariable& variable : variables_) {
    if (nearest == nullptr || variable.begin <= offset) nearest = &variable;
  }
  if (nearest == nullptr) {
    text << offset << " bytes into the " << call_->shape.shared_bytes
         << " of dynamic shared memory";
  } else {
    text << static_cast<int64_t>(offset) - static_cast<int64_t>(nearest->begin)
         << " bytes behind the beginning of the shared variable " << nearest->name << ", which has "
         << nearest->bytes;
  }
  return text.str();
}

void Block::Report(const std::string& what) {
  has_failed_ = true;
  std::ostringstream text;
  text << "kernel " << call_->name << ", block " << Text(block_index) << ", " << what
       << " (launched by " << call_->where.function_name() << ")";
  ReportFailure(text.str());
}

void Block::Fail(const std::string& what) {
  StopChecks();
  Report("thread " + Text(thread_index) + ": " + what);
  Wait();
  Die("a thread that failed went on");
}

std::string Block::Describe(int thread) const {
  const Thread& described = threads_[static_cast<size_t>(thread)];
  std::ostringstream text;
  text << "thread " << Text(ThreadIndex(thread, call_->shape.block));
  if (described.state == State::kEnded) {
    text << " has ended";
  } else if (described.state == State::kAtBarrier) {
    text << " waits in __syncthreads at " << Text(described.where);
  } else {
    text << " waits in " << described.function << " at " << Text(described.where) << " for mask "
         << std::hex << described.mask;
  }
  return text.str();
}

// Nobody can go on: tells of one that waits, and of one that it waits for.
std::string Block::WhyStuck() const {
  std::ostringstream text;
  const int count = static_cast<int>(threads_.size());
  for (int i = 0; i < count; ++i) {
    const Thread& thread = threads_[static_cast<size_t>(i)];
    if (thread.state != State::kInWarp) continue;
    const int first = i - i % static_cast<int>(kLanes);
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) {
      const bool is_asked = (thread.mask >> lane & 1) != 0;
      if (!is_asked || IsInExchange(first + lane, thread.mask, thread.function)) continue;
      text << Describe(i) << ", but "
           << (first + lane < count ? Describe(first + lane)
                                    : "the block has no thread of one of these lanes");
      return text.str();
    }
  }
  for (int i = 0; i < count; ++i) {
    if (threads_[static_cast<size_t>(i)].state != State::kAtBarrier) continue;
    for (int k = 0; k < count; ++k) {
      if (threads_[static_cast<size_t>(k)].state == State::kAtBarrier) continue;
      text << Describe(i) << ", but " << Describe(k);
      return text.str();
    }
  }
  return text.str();
}

// A block with its stacks, for a launch. Blocks are used again and never destroyed: kernels may run
// until the very end.
class BorrowedBlock {
 public:
  BorrowedBlock() {
    const std::lock_guard lock(TheShelf().mutex);
    if (TheShelf().blocks.empty()) {
      block_ = new Block;
    } else {
      block_ = TheShelf().blocks.back();
      TheShelf().blocks.pop_back();
    }
  }
  ~BorrowedBlock() {
    const std::lock_guard lock(TheShelf().mutex);
    TheShelf().blocks.push_back(block_);
  }
  BorrowedBlock(const BorrowedBlock&) = delete;
  BorrowedBlock& operator=(const BorrowedBlock&) = delete;

  Block& operator*() const { return *block_; }

 private:
  struct Shelf {
    std::mutex mutex;
    std::vector<Block*> blocks;
  };
  static Shelf& TheShelf() {
    static auto& shelf = *new Shelf;
    return shelf;
  }

  Block* block_;
};

void RunLaunch(const KernelCall& call, int device) {
  const BorrowedBlock borrowed;
  Block& block = *borrowed;
  const dim3 grid = call.shape.grid;
  const uint64_t count = uint64_t{grid.x} * grid.y * grid.z;
  static std::atomic<uint64_t> launches = 0;
  const uint64_t seed = TheOptions().seed;
  // Each launch has an order of its own; one of eight runs as a device often does, as numbered.
  const uint64_t drawn = seed == 0 ? 0 : Mixed(seed * 1000003 + ++launches);
  const bool is_shuffled = drawn % 8 != 0;
  // Blocks come in any order: backwards, or from one in the middle on.
  const bool is_backwards = is_shuffled && drawn / 8 % 2 != 0;
  const uint64_t first = is_shuffled ? drawn / 16 % count : 0;
  block.races().BeginLaunch();
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t linear = (is_backwards ? first + count - i : first + i) % count;
    const uint3 index = {static_cast<unsigned>(linear % grid.x),
                         static_cast<unsigned>(linear / grid.x % grid.y),
                         static_cast<unsigned>(linear / grid.x / grid.y)};
    if (!block.Run(call, device, index, is_shuffled ? Mixed(drawn + i) | 1 : 0)) return;
  }
}

// ---- what device.h declares

void* SharedVariable(const void* key, size_t bytes, const char* name) {
  return Block::Running()->Shared(key, bytes, name);
}

void* DynamicSharedMemory() { return Block::Running()->DynamicShared(); }

void SyncThreads(Where where) { Block::Running()->SyncThreads(where); }

void Exchange(unsigned mask, const char* function, const void* value, size_t bytes, int lane,
              void* result, Where where) {
  Block::Running()->Exchange(mask, function, value, bytes, lane, result, where);
}

uint3 ThreadIdx() { return thread_index; }
uint3 BlockIdx() { return block_index; }
dim3 BlockDim() { return block_size; }
dim3 GridDim() { return grid_size; }

void SetAtomic(bool is_atomic) { Block::Running()->races().SetAtomic(is_atomic); }

void PassFence() { Block::Running()->races().PassFence(); }

unsigned LaneId() { return Block::Running()->LaneId(); }

}  // namespace skiff::cuda_emulation
