// An evaluation: the metrics of a test program over all batches of a reader.
#pragma once

#include "framework/comm/communicator.h"
#include "framework/training/bound_feeds.h"
#include "framework/training/metric.h"
#include "framework/training/reader.h"
#include "framework/training/training_metrics.h"

namespace skiff::training {

// Runs the test program on epoch 0 of the reader. Returns the means of the metrics and the results
// of the streaming metrics. `program` fetches metrics.evaluation_fetches().
//
// `ranks`: nullptr, or what connects several ranks, all of which evaluate at once; all get the same
// bits. If the reader is shared by them (ShardedReader, LastRun::kPartial), the values of all
// batches are added up in the order in which one process reads the batches, so means have its bits;
// streaming metrics are merged in the order of the ranks. Otherwise each rank evaluates all
// batches, and rank 0's values count.
//
// Throws what metrics, reader, program and CheckMergeable throw, and what Exchange throws.
MetricValues Evaluate(const TrainingMetrics& metrics, Reader* reader, BoundFeeds* program,
                      Communicator* ranks);

// Throws an Error (kInvalidArgument) if ranks share the reader and a streaming metric has no State.
void CheckMergeable(const TrainingMetrics& metrics, const Reader& reader);

}  // namespace skiff::training
