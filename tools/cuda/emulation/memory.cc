#include "tools/cuda/emulation/memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <utility>

#include "tools/cuda/emulation/block.h"
#include "tools/cuda/emulation/devices.h"
#include "tools/cuda/emulation/failures.h"
#include "tools/cuda/emulation/options.h"

namespace skiff::cuda_emulation {
namespace {

// Between any two ranges, so that what leaves one finds nothing.
constexpr size_t kGap = size_t{2} << 20;
constexpr size_t kPage = 4096;

struct sigaction outer_action;

// The stack on which a thread learns of an address that isn't there.
class SignalStack {
 public:
  SignalStack() {
    stack_t stack{};
    stack.ss_sp = bytes_.get();
    stack.ss_size = kBytes;
    sigaltstack(&stack, &before_);
  }
  // Whoever has given the thread another one takes that away when the thread ends: a sanitizer.
  ~SignalStack() { sigaltstack(&before_, nullptr); }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr size_t kBytes = size_t{64} << 10;
  std::unique_ptr<char[]> bytes_ = std::make_unique<char[]>(kBytes);
  stack_t before_{};
};

void GiveSignalStack() { thread_local const SignalStack stack; }

void OnBadAddress(int signal, siginfo_t* info, void* context) {
  Block* const block = Block::Running();
  Block::StopChecks();
  std::ostringstream text;
  text << "touches address " << info->si_addr;
  if (block != nullptr) {
    block->Fail(text.str() + ", where there is no memory");
  }
  DeviceMemory& memory = DeviceMemory::Get();
  if (memory.IsOfDevice(info->si_addr)) {
    Die("the host " + text.str() + " of device " + std::to_string(memory.DeviceOf(info->si_addr)));
  }
  if (memory.IsForCopies(info->si_addr)) Die("a copy " + text.str() + ", where memory was");
  sigaction(SIGSEGV, &outer_action, nullptr);
  if (outer_action.sa_sigaction != nullptr) outer_action.sa_sigaction(signal, info, context);
}

}  // namespace

constinit thread_local std::array<DeviceMemory::Known, DeviceMemory::kKnown> DeviceMemory::knowns_;
constinit thread_local size_t DeviceMemory::oldest_known_ = 0;
constinit thread_local bool DeviceMemory::has_opened_ = false;

DeviceMemory& DeviceMemory::Get() {
  static auto& memory = *new DeviceMemory;
  return memory;
}

DeviceMemory::DeviceMemory()
    : of_each_(kAddressBytes / static_cast<size_t>(DeviceCount()) / kGap * kGap),
      usage_(static_cast<size_t>(DeviceCount()), Usage{.reserved = kGap}) {
  void* addresses = mmap(nullptr, 2 * kAddressBytes + kGap, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (addresses == MAP_FAILED) Die("no addresses for the devices' memory");
  begin_ = reinterpret_cast<uintptr_t>(addresses);
  begin_ = (begin_ + kGap - 1) / kGap * kGap;
  struct sigaction action {};
  action.sa_sigaction = OnBadAddress;
  // A kernel's thread never returns from it.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGSEGV, &action, &outer_action);
}

template <class Visit>
void DeviceMemory::ForEachStretch(const Visit& visit) const {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  for (const auto& [address, range] : ranges_) {
    if (!range.is_allowed) continue;
    if (address != end) {
      if (end > begin) visit(begin, end - begin);
      begin = address;
    }
    end = address + range.bytes;
  }
  if (end > begin) visit(begin, end - begin);
}

bool DeviceMemory::Find(uintptr_t begin, size_t bytes) {
  const std::lock_guard lock(mutex_);
  bool holds = false;
  ForEachStretch([&](uintptr_t first, size_t count) {
    if (begin < first || begin + bytes > first + count) return;
    knowns_[oldest_known_++ % kKnown] = {changes_.load(), first, first + count,
                                         DeviceOf(reinterpret_cast<const void*>(first))};
    holds = true;
  });
  return holds;
}

void* DeviceMemory::Reserve(int device, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<size_t>(device);
  size_t& reserved = usage_[index].reserved;
  const size_t with_gap = (bytes + kGap - 1) / kGap * kGap + kGap;
  if (with_gap > of_each_ - reserved) return nullptr;
  reserved += with_gap;
  return reinterpret_cast<void*>(begin_ + index * of_each_ + reserved - with_gap);
}

void DeviceMemory::Release(void* begin, size_t bytes) { Unmap(begin, bytes); }

bool DeviceMemory::Take(int device, size_t bytes) {
  const std::lock_guard lock(mutex_);
  size_t& taken = usage_[static_cast<size_t>(device)].taken;
  if (bytes > total_bytes() - taken) return false;
  taken += bytes;
  return true;
}

void DeviceMemory::GiveBack(int device, size_t bytes) {
  const std::lock_guard lock(mutex_);
  usage_[static_cast<size_t>(device)].taken -= bytes;
}

size_t DeviceMemory::total_bytes() const { return TheOptions().memory_bytes; }

size_t DeviceMemory::free_bytes(int device) {
  const std::lock_guard lock(mutex_);
  return total_bytes() - usage_[static_cast<size_t>(device)].taken;
}

void DeviceMemory::AddRange(uintptr_t begin, const Range& range) {
  ranges_[begin] = range;
  ++changes_;
}

void DeviceMemory::Fill(void* begin, size_t bytes) {
  const int file = memfd_create("device", MFD_CLOEXEC);
  char* always = static_cast<char*>(begin) + kAddressBytes;
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0 ||
      mmap(begin, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED ||
      mmap(always, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
    Die("no memory for the devices");
  }
  close(file);
}

bool DeviceMemory::Map(void* begin, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const auto behind = ranges_.lower_bound(address + bytes);
  if (behind != ranges_.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second.bytes > address) return false;
  }
  Fill(begin, bytes);
  AddRange(address, {.bytes = bytes, .is_allowed = false, .is_allocated = false});
  return true;
}

bool DeviceMemory::Unmap(void* begin, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const auto first = ranges_.lower_bound(address);
  const auto behind = ranges_.lower_bound(address + bytes);
  size_t unmapped = 0;
  for (auto at = first; at != behind; ++at) unmapped += at->second.bytes;
  ranges_.erase(first, behind);
  ++changes_;
  // Memory goes, addresses stay.
  for (char* mapping : {static_cast<char*>(begin), static_cast<char*>(begin) + kAddressBytes}) {
    mmap(mapping, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  return unmapped == bytes;
}

bool DeviceMemory::Allow(void* begin, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto address = reinterpret_cast<uintptr_t>(begin);
  size_t allowed = 0;
  for (auto at = ranges_.lower_bound(address); at != ranges_.end() && at->first < address + bytes;
       ++at) {
    at->second.is_allowed = true;
    allowed += at->second.bytes;
  }
  ++changes_;
  if (open_ > 0 || !TheOptions().hides_memory) {
    mprotect(begin, bytes, PROT_READ | PROT_WRITE);
  }
  return allowed == bytes;
}

void* DeviceMemory::Allocate(int device, size_t bytes) {
  const size_t pages = (bytes + kPage - 1) / kPage * kPage;
  if (!Take(device, pages)) return nullptr;
  void* begin = Reserve(device, pages);
  if (begin == nullptr) {
    GiveBack(device, pages);
    return nullptr;
  }
  {
    const std::lock_guard lock(mutex_);
    Fill(begin, bytes);
    AddRange(reinterpret_cast<uintptr_t>(begin),
             {.bytes = bytes, .is_allowed = true, .is_allocated = true});
  }
  Allow(begin, bytes);
  return begin;
}

bool DeviceMemory::Free(void* begin) {
  size_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = ranges_.find(reinterpret_cast<uintptr_t>(begin));
    if (found == ranges_.end() || !found->second.is_allocated) return false;
    bytes = found->second.bytes;
  }
  Unmap(begin, bytes);
  GiveBack(DeviceOf(begin), (bytes + kPage - 1) / kPage * kPage);
  return true;
}

void DeviceMemory::Open() {
  if (std::exchange(has_opened_, true)) return;
  GiveSignalStack();
  const std::lock_guard lock(mutex_);
  if (open_++ > 0 || !TheOptions().hides_memory) return;
  ForEachStretch([](uintptr_t begin, size_t bytes) {
    mprotect(reinterpret_cast<void*>(begin), bytes, PROT_READ | PROT_WRITE);
  });
}

void DeviceMemory::Close() {
  if (!std::exchange(has_opened_, false)) return;
  const std::lock_guard lock(mutex_);
  if (--open_ > 0 || !TheOptions().hides_memory) return;
  ForEachStretch([](uintptr_t begin, size_t bytes) {
    mprotect(reinterpret_cast<void*>(begin), bytes, PROT_NONE);
  });
}

}  // namespace skiff::cuda_emulation
