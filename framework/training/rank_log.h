// The messages of a training on a rank other than 0. Rank 0 writes all messages; the other ranks
// would repeat them.
#pragma once

#include <memory>
#include <ostream>

#include "framework/comm/world.h"

namespace skiff::training {

// Takes what a training writes. Passes on only the lines that begin with "warning: ", each behind
// the text of the rank: "rank 3 (host b): warning: …". Lines that don't end yet are kept. `out`
// outlives the log.
class RankLog {
 public:
  RankLog(const World& world, std::ostream* out);
  ~RankLog();

  // Returns the stream that a training on this rank writes to: `out` itself on rank 0.
  std::ostream* stream() { return stream_; }

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
  std::unique_ptr<std::ostream> filter_;
  std::ostream* stream_;
};

}  // namespace skiff::training
