// Copies of the feeds whose elements decide what memory kernels touch (DecidingVariables). Another
// thread may write to a feed during a run. So each run reads such a feed once, when it begins, and
// its kernels read the copy. All other feeds are read in place.
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
  // Takes memory of the arena, as much as the plan's feeds have at most. Throws an Error
  // (kResourceExhausted) if there is none. `deciding` is that of the plan's program. All else that
  // it is given must outlive it.
  FeedCopies(const Plan& plan, const DecidingVariables& deciding, const BoundValues& values,
             SharedArena* arena);

  // Gives the values of these feeds, which the plan serves, the copies as their memory. Read must
  // follow before a kernel runs. Allocates nothing.
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
    Tensor from;       // what was fed
  };

  SharedArena& arena_;
  std::vector<Copy> copies_;
};

}  // namespace skiff
