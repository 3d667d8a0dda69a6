#include "framework/tensor/shared_writes.h"

#include <atomic>

namespace skiff {
namespace {

// One count for all buffers. A form that is made anew though nobody wrote its variable is right all
// the same. That happens where something trains beside a model that serves, and parameters that
// share a buffer are among what is trained: in flat buffers, in clones.
std::atomic<uint64_t> shared_writes{0};

}  // namespace

void NoteWrite(const Tensor& written) {
  if (written.buffer().use_count() > 1) ++shared_writes;
}

uint64_t SharedWrites() { return shared_writes.load(); }

}  // namespace skiff
