#include "framework/tensor/shared_writes.h"

#include <atomic>

namespace skiff {
namespace {

// One count for all buffers. A form that is made anew though nobody wrote its variable is right all
// the same. That happens where something trains beside a model that serves, and parameters that
// share a buffer are among what is trained: in flat buffers, in clones.
std::atomic<uint64_t> shared_writes{0};

}  // namespace

bool NoteWrite(const Tensor& written) {
  const bool is_shared = written.buffer().use_count() > 1;
  if (is_shared) ++shared_writes;
  return is_shared;
}

uint64_t SharedWrites() { return shared_writes.load(); }

}  // namespace skiff
