// Cuts the joint body of a loop into its halves. Internal to framework/executor.
#pragma once

#include <optional>
#include <vector>

#include "framework/executor/lowering/loop_links.h"
#include "framework/plan/plan.h"

namespace skiff {

// A feed of one half.
struct HalfFeed {
  JointFeed link;
  bool reads_data = false;  // false: the half reads only the shape
};

// A fetch of one half. Its link's `feed` is an index among HalfBody::feeds.
struct HalfFetch {
  JointFetch link;
  // Of kLast: the result if no iteration runs.
  OuterInput initial = {};
};

struct HalfBody {
  // The instructions of the half, on the values of the joint body. Feeds and fetches are in the
  // order of the links below.
  Plan plan;
  std::vector<HalfFeed> feeds;
  std::vector<HalfFetch> fetches;
  int condition_feed = -1;  // the index of JointLinks::condition among the feeds
  // Values of variables of the scope, and of arrays, that the half reads and writes.
  std::vector<ValueId> scope_reads;
  std::vector<ValueId> scope_writes;
};

// A value that the forward half makes, or is fed in each iteration, and that the gradient half
// reads: it needs a stack.
struct Stash {
  ValueId value;
  // A carried stash that becomes `value` when an iteration ends: both lie in one stack, `value` in
  // the next slot. None: `value` has a stack of its own.
  ValueId next_of;
};

struct LoopHalves {
  HalfBody forward;
  std::optional<HalfBody> gradient;  // of a joint body with a boundary
  std::vector<Stash> stashes;        // carried values first
};

// Returns the halves of a joint body: the instructions before its loop_boundary (all instructions
// if it has no boundary), and the instructions after the boundary, including recomputed
// instructions. `links` must name the feeds and fetches of `joint`.
//
// A half has the feeds that it uses and all feeds with a LoD, since other LoDs follow from the
// feeds'. The forward half also has the condition and the feeds that are stashes. The gradient half
// has the invariant feeds and the parts of both halves; carried values of the forward half reach it
// as stashes. A carried fetch whose feed the half lacks becomes kLast, or is left out if it defines
// no variable.
//
// A view of an invariant feed lies in the feed, unless something else writes to the view's storage,
// and is no stash. Stashes that lie in the arena get the storage kStack. Variables of the scope are
// never stashes.
LoopHalves CutLoop(Plan joint, const JointLinks& links);

}  // namespace skiff
