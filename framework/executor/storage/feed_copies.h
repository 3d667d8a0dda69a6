// Copies of the feeds with elements that decide where kernels read and write (DecidingVariables).
// Another thread may write to a feed during a run. So each run copies such a feed once, at its
// beginning, and kernels read the copy. Kernels read all other feeds in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/analysis/deciding_variables.h"
#include "framework/executor/api/feed_list.h"
#include "framework/executor/storage/bound_values.h"
#include "framework/executor/storage/shared_arena.h"
#include "framework/plan/plan.h"

namespace skiff {

class FeedCopies {
 public:
  // Takes memory of the arena for the largest feeds that the plan serves. Throws an Error
  // (kResourceExhausted) if there is no memory. `deciding` belongs to the plan's program. All other
  // arguments must outlive the object.
  FeedCopies(const Plan& plan, const DecidingVariables& deciding, const BoundValues& values,
             SharedArena* arena);

  // Points the values of these feeds, which the plan serves, to the copies. Read must follow before
  // a kernel runs. Allocates nothing.
  void Bind(const FeedList& feeds);
  // Copies the feeds of the last Bind. Throws an Error (kInvalidArgument) for a bool that is
  // neither 0 nor 1.
  void Read();
  void Release();

 private:
  struct Copy {
    size_t feed;  // its index in the plan's feeds
    std::string name;
    std::string what;  // for messages
    Tensor* value;     // of the plan
    int64_t bytes;     // at most
    Tensor from;       // the feed
  };

  SharedArena& arena_;
  std::vector<Copy> copies_;
};

}  // namespace skiff
