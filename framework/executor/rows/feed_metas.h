// The metas and counts of the feeds of a run, for which plans are made.
#pragma once

#include "framework/executor/api/feed_list.h"
#include "framework/executor/rows/row_counts.h"
#include "framework/ir/program.h"

namespace skiff {

// Throws an Error (kInvalidArgument) that names the feed if a feed has no data, isn't in the plain
// layout or isn't on the CPU.
void CheckFeeds(const FeedList& feeds);

// Returns the metas of the feeds of a program, or of a later segment. Each ragged feed has a LoD
// group of its own, since two feeds may have equal LoDs in this run and different LoDs in the next.
// A rank table, made by an earlier segment, has the LoD of the ranked variable.
FeedMetas MetasOfFeeds(const Program& program, const FeedList& feeds);

bool HasRaggedFeed(const FeedMetas& feeds);

// Returns the counts of the feeds that may vary: the rows of feeds whose first dim the program
// leaves open, and the counts of their LoDs.
CountClasses CountsOfFeeds(const Program& program, const FeedMetas& feeds);

}  // namespace skiff
