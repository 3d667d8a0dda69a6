// The flags of programs that may run as several ranks, and what these programs do with the flags:
// --reduction, --bucket_bytes, --overlap, --shard_optimizer, --sync_batch_norm and
// --collective_timeout. A single process is one rank, with a communicator of nullptr.
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
// First compares the flags of this program (those that --help lists) on all ranks, and throws an
// Error if one of them has another value on a rank, which it names. Throws an Error
// (kInvalidArgument) for an illegal value of the flags above, and what LaunchedRanks and `run`
// throw. An Error that all ranks have (training::AgreedError) is thrown on rank 0 alone; other
// ranks return 1. Any other exception ends all ranks.
int RunOnRanks(const std::function<int(const std::shared_ptr<Communicator>&)>& run);

// Returns how the ranks run a program together at `place`, that of this rank. On a device, all
// ranks call it at the same time. Throws what MakeNcclRank throws.
DataParallelOptions DataParallelFromFlags(const std::shared_ptr<Communicator>& ranks, Place place);

// Sets the threads that compute. 0: those of ThreadsOfRank. All ranks call it; throws what
// Exchange throws.
void SetThreads(int32_t threads, Communicator* ranks);

}  // namespace skiff::models
