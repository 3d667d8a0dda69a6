// What plans need to know of the tensors that a run is given.
#pragma once

#include "framework/executor/api/feed_list.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/ir/program.h"

namespace skiff {

// Throws an Error (kInvalidArgument) that names the feed if a feed has no data, isn't in the plain
// layout or isn't on the CPU.
void CheckFeeds(const FeedList& feeds);

// Returns the metas of the feeds of a program, or of those of a later segment. Each ragged feed has
// a LoD group of its own, since two feeds may have equal LoDs in this run and others in the next. A
// rank table, which an earlier segment has made, has the LoD of what it ranks.
FeedMetas MetasOfFeeds(const Program& program, const FeedList& feeds);

bool HasRaggedFeed(const FeedMetas& feeds);

// Returns the counts of the feeds that may vary: the rows of feeds whose first dim the program
// leaves open, and the counts of their LoDs.
CountClasses CountsOfFeeds(const Program& program, const FeedMetas& feeds);

}  // namespace skiff
