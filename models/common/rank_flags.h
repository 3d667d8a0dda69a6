// Programs that may run as several ranks, and their flags: --reduction, --bucket_bytes, --overlap,
// --shard_optimizer, --sync_batch_norm and --collective_timeout. A single process is one rank, with
// a communicator of nullptr.
#pragma once

#include <gflags/gflags_declare.h>

#include <functional>
#include <memory>

#include "framework/base/place.h"
#include "framework/comm/communicator.h"
#include "framework/transpiler/api/data_parallel_options.h"

DECLARE_int64(bucket_bytes);
DECLARE_string(overlap);
DECLARE_bool(shard_optimizer);
DECLARE_bool(sync_batch_norm);

namespace skiff::models {

// Runs a program as one of the ranks that a launcher has started, or alone. Returns what `run`
// returns, once all ranks have come so far.
//
// First compares the flags that --help lists. Throws an Error (kFailedPrecondition) that names the
// first difference, if ranks have other values: "rank 3 (host b): batch_size is 32, rank 0: 64".
// Throws an Error (kInvalidArgument) for an illegal value of the flags of this file, and what
// LaunchedRanks and `run` throw. If `run` throws an AgreedError, which all ranks do, rank 0 prints
// it, and then all ranks return 1. Any other exception ends all ranks.
int RunAsRank(const std::function<int(const std::shared_ptr<Communicator>&)>& run);

// Returns how the ranks run a program together at `place`, that of this rank. On a device, all
// ranks call it at the same time. Throws what MakeNcclRank throws.
DataParallelOptions DataParallelFromFlags(const std::shared_ptr<Communicator>& ranks, Place place);

// Sets the threads that compute. 0: those of ThreadsOfRank. All ranks call it; throws what
// Exchange throws.
void SetThreads(int32_t threads, Communicator* ranks);

}  // namespace skiff::models
