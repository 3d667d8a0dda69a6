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

// A fetch of one half. The `feed` of its link is an index among HalfBody::feeds.
struct HalfFetch {
  JointFetch link;
  // Of kLast: what it is if no iteration runs.
  OuterInput initial = {};
};

struct HalfBody {
  // The instructions of the half, on the values of the joint body. Its feeds and fetches are those
  // of the links below, in their order.
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
  // The stash, a carried value, that becomes this one when an iteration ends: both lie in one
  // stack, this one in the next slot. None: the value has a stack of its own.
  ValueId next_of;
};

struct LoopHalves {
  HalfBody forward;
  std::optional<HalfBody> gradient;  // of a joint body with a boundary
  std::vector<Stash> stashes;        // carried values first
};

// Returns the halves of a joint body: the instructions before its loop_boundary, or all if there is
// none, and those after it, such as what the pass `recompute` computes again. `links` must name the
// values that `joint` feeds and fetches.
//
// A half has those feeds that it uses, those whose LoDs others follow, and of the forward half the
// condition and what the gradient half reads. The gradient half has no carried values of the
// forward half, which are stashes to it, but has the invariant feeds and the parts of both. A
// carried fetch whose feed the half lacks is of the kind kLast; it is left out if it defines no
// variable.
//
// A view of an invariant feed lies in that feed, unless something else writes to its storage. It is
// no stash. Stashes that lie in the arena get the storage kStack. Variables of the scope are never
// stashes.
LoopHalves CutLoop(Plan joint, const JointLinks& links);

}  // namespace skiff
