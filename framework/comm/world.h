// The place of this rank among all ranks. A rank is a process, or a thread, that has a place to
// compute on; all ranks of a training run the same program on different batches.
#pragma once

#include <cstdint>
#include <string>

namespace skiff {

struct World {
  int32_t rank = 0;  // 0 <= rank < size
  int32_t size = 1;
  int32_t local_rank = 0;  // among the ranks on this host
  int32_t local_size = 1;
  std::string host = {};  // the host's name; "" if all ranks are threads of a process

  // Returns the rank as messages name it: "rank 3 (host b)", or "rank 3" without a host.
  std::string Text() const;
  // Prints "rank 3 (host b): MESSAGE" to stderr.
  void Report(const std::string& message) const noexcept;
};

}  // namespace skiff
