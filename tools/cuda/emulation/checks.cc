// What g++ calls before each access to memory in a .cu file, and in place of atomics: those are the
// calls of -fsanitize=thread, whose runtime isn't linked. (-fsanitize=kernel-address leaves out a
// write behind a read of the same address: `sum += 1` by all threads would be no race.) And what
// -fsanitize=alignment calls.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>

#include "tools/cuda/emulation/block.h"
#include "tools/cuda/emulation/failures.h"
#include "tools/cuda/emulation/memory.h"
#include "tools/cuda/emulation/options.h"

namespace skiff::cuda_emulation {
namespace {

// Fails for an access that isn't right, or that races with another one.
[[gnu::noinline]] void Refuse(Block* block, const void* address, size_t bytes, bool is_write,
                              bool is_race) {
  Block::StopChecks();
  std::string fault;
  if (is_race) {
    fault = block->races().race();
  } else if (const DeviceMemory& memory = DeviceMemory::Get(); memory.IsOfDevice(address)) {
    const int owner = memory.DeviceOf(address);
    fault = owner == block->device() ? "no memory of the device is allocated there"
                                     : "an address of device " + std::to_string(owner) +
                                           ", on device " + std::to_string(block->device());
  } else {
    fault = block->SharedNear(address);
    if (fault.empty()) fault = "not the device's memory, but the host's or nobody's";
  }
  std::ostringstream text;
  text << (is_write ? "writes " : "reads ") << bytes << " bytes at " << address << ": " << fault;
  block->Fail(text.str());
}

// Inline, since most of the time goes into calls of this.
[[gnu::always_inline]] inline void Check(const void* address, size_t bytes, bool is_write) {
  Block* block = Block::Running();
  // The host's part of the file; what it must not touch it can't.
  if (block == nullptr) return;
  static const bool checks_accesses = TheOptions().checks_accesses;
  if (!checks_accesses || block->IsThreadsOwn(address, bytes)) return;
  DeviceMemory& memory = DeviceMemory::Get();
  const bool is_global = memory.IsOfDevice(address);
  const bool is_there =
      is_global ? memory.Holds(block->device(), address, bytes) : block->IsShared(address, bytes);
  if (is_there && block->Access(address, bytes, is_write, !is_global)) return;
  Refuse(block, address, bytes, is_write, /*is_race=*/is_there);
}

template <class T>
void CheckAtomic(volatile T* at) {
  Check(const_cast<T*>(at), sizeof(T), false);
  Check(const_cast<T*>(at), sizeof(T), true);
}

}  // namespace
}  // namespace skiff::cuda_emulation

using skiff::cuda_emulation::Check;
using skiff::cuda_emulation::CheckAtomic;

extern "C" {

void __tsan_init() {}

#define SKIFF_EMULATED_CHECK(BYTES)                                    \
  void __tsan_read##BYTES(const void* at) { Check(at, BYTES, false); } \
  void __tsan_write##BYTES(const void* at) { Check(at, BYTES, true); }
SKIFF_EMULATED_CHECK(1)
SKIFF_EMULATED_CHECK(2)
SKIFF_EMULATED_CHECK(4)
SKIFF_EMULATED_CHECK(8)
SKIFF_EMULATED_CHECK(16)
#undef SKIFF_EMULATED_CHECK

void __tsan_read_range(const void* at, size_t bytes) { Check(at, bytes, false); }
void __tsan_write_range(const void* at, size_t bytes) { Check(at, bytes, true); }
void __tsan_vptr_update(void**, const void*) {}  // by constructors of the host's part

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
// The order that the caller asks for is the last argument; here it is always the strictest.
#define SKIFF_EMULATED_ATOMIC(BITS, TYPE)                                                          \
  TYPE __tsan_atomic##BITS##_load(const volatile TYPE* at, int) {                                  \
    Check(const_cast<const TYPE*>(at), sizeof(TYPE), false);                                       \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                \
  TYPE __tsan_atomic##BITS##_fetch_add(volatile TYPE* at, TYPE value, int) {                       \
    CheckAtomic(at);                                                                               \
    return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);                                        \
  }                                                                                                \
  int __tsan_atomic##BITS##_compare_exchange_weak(volatile TYPE* at, TYPE* expected, TYPE desired, \
                                                  int, int) {                                      \
    CheckAtomic(at);                                                                               \
    return __atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_SEQ_CST,             \
                                       __ATOMIC_SEQ_CST);                                          \
  }
SKIFF_EMULATED_ATOMIC(8, uint8_t)
SKIFF_EMULATED_ATOMIC(32, uint32_t)
SKIFF_EMULATED_ATOMIC(64, uint64_t)
#undef SKIFF_EMULATED_ATOMIC

// What g++ says of a pointer of which a type is expected.
struct TypeMismatch {
  const char* file;
  uint32_t line;
  uint32_t column;
  const void* type;
  unsigned char log_alignment;
  unsigned char kind;
};

void __ubsan_handle_type_mismatch_v1(const TypeMismatch* data, const void* at) {
  skiff::cuda_emulation::Block* block = skiff::cuda_emulation::Block::Running();
  if (block == nullptr) return;
  skiff::cuda_emulation::Block::StopChecks();
  std::ostringstream text;
  text << data->file << ":" << data->line << ": an access at " << at << ", expected a multiple of "
       << (1U << data->log_alignment);
  block->Fail(text.str());
}

}  // extern "C"
