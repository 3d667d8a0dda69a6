#include "memory/out_of_memory_error.h"

#include <utility>

namespace skiff {
namespace {

std::string MessageOf(const MemoryShortage& shortage) {
  const std::string reason =
      shortage.reason.empty()
          ? StrCat("expected at most the memory limit of ", shortage.limit_bytes, " bytes")
          : shortage.reason;
  return StrCat("out of memory on ", shortage.memory, ": ", shortage.requested_bytes,
                " bytes asked for (", MemoryTagName(shortage.tag), "), ", shortage.live_bytes,
                " live, ", shortage.reserved_bytes, " reserved: ", reason);
}

}  // namespace

OutOfMemoryError::OutOfMemoryError(MemoryShortage shortage)
    : Error(ErrorCode::kResourceExhausted, MessageOf(shortage)), shortage_(std::move(shortage)) {}

}  // namespace skiff
