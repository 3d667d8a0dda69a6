#include "framework/tensor/shared_writes.h"

#include <atomic>

namespace skiff {
namespace {

// One count for all buffers: such writes are rare, and a form that is made anew is right all the
// same.
std::atomic<uint64_t> shared_writes{0};

}  // namespace

void NoteWrite(const Tensor& written) {
  if (written.buffer().use_count() > 1) ++shared_writes;
}

uint64_t SharedWrites() { return shared_writes.load(); }

}  // namespace skiff
