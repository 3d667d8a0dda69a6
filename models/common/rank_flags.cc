#include "models/common/rank_flags.h"

#include <gflags/gflags.h>

#include <exception>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/parallel.h"
#include "framework/comm/activity_scope.h"
#include "framework/comm/gather.h"
#include "framework/comm/launched_ranks.h"
#include "framework/comm/nccl_communicator.h"
#include "framework/comm/rank_resources.h"
#include "framework/command_line/command_line.h"
#include "framework/training/rank_agreement.h"
#include "models/common/rank_setup.h"

DEFINE_string(
    reduction, "auto",
    "With several ranks: how their gradients are added. ranks: in the order of the ranks, which "
    "gives the bits of one process that merges as many gradients. fast: as the library that moves "
    "them likes; the last bits may differ from run to run. auto: ranks on the CPU, fast on a "
    "device.");
DEFINE_int64(bucket_bytes, int64_t{25} << 20,
             "With several ranks: gradients are added in groups of at least so many bytes. 0: each "
             "alone. Results stay the same, unless --reduction is fast.");
DEFINE_string(overlap, "auto",
              "With several ranks: whether gradients are added while others are still computed: "
              "on, off, or auto (on a device, and where a rank has at least 4 cores). Results stay "
              "the same.");
DEFINE_bool(shard_optimizer, false,
            "With several ranks: each rank keeps the states of the optimizer for its part of the "
            "parameters only, and updates only this part (ZeRO-1). Results and files stay the "
            "same, unless --reduction is fast.");
DEFINE_bool(sync_batch_norm, false,
            "With several ranks: batch norms take the mean and the variance of the batches of all "
            "ranks, as if these were one batch, and not each rank those of its own. A resumed "
            "training then has as many ranks as before.");
DEFINE_double(collective_timeout, 600,
              "With several ranks: seconds without progress after which a rank that waits for "
              "another one ends all ranks with an error. More than the longest work that one rank "
              "does alone: rank 0 saves, and times kernels.");

namespace skiff::models {
namespace {

void CheckRankFlags() {
  SKIFF_ENFORCE(FLAGS_bucket_bytes >= 0, kInvalidArgument, "bucket_bytes = ", FLAGS_bucket_bytes,
                ": expected no negative number");
  SKIFF_ENFORCE(FLAGS_collective_timeout > 0, kInvalidArgument,
                "collective_timeout = ", FLAGS_collective_timeout,
                ": expected a number of seconds above 0");
  SKIFF_ENFORCE(
      FLAGS_reduction == "auto" || FLAGS_reduction == "ranks" || FLAGS_reduction == "fast",
      kInvalidArgument, "reduction \"", FLAGS_reduction, "\": expected auto, ranks or fast");
  OverlapFromName(FLAGS_overlap);
}

void CheckEqualFlags(Communicator* ranks) {
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  training::RankFacts facts;
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    // Others are those of libraries.
    const bool is_ours = flag.filename.find("models/") != std::string::npos ||
                         flag.filename.find("tools/") != std::string::npos;
    if (is_ours) facts.emplace_back(flag.name, flag.current_value);
  }
  training::CheckEqualOnRanks(ranks, facts);
}

// Waits for all ranks, within the time limit; the end of MPI waits without one.
void WaitForEnd(Communicator* ranks) {
  if (ranks == nullptr) return;
  const std::string activity = "the end of the program";
  const ActivityScope scope(ranks, &activity);
  GatherBytes(ranks, nullptr, 0, nullptr);
}

}  // namespace

int RunAsRank(const std::function<int(const std::shared_ptr<Communicator>&)>& run) {
  std::shared_ptr<Communicator> ranks = LaunchedRanks({.time_limit = FLAGS_collective_timeout});
  try {
    CheckEqualFlags(ranks.get());
    CheckRankFlags();
    const int status = run(ranks);
    // A launcher may kill a rank as soon as another one has ended with a status other than 0.
    std::cout << std::flush;
    WaitForEnd(ranks.get());
    return status;
  } catch (const training::AgreedError& error) {
    if (WorldOf(ranks.get()).rank == 0) PrintError(error.what());
    // Waits for all ranks: none has to end the others, and none ends before the Error is printed.
    ranks.reset();
    return 1;
  } catch (const std::exception& error) {
    training::AbortRanks(ranks.get(), error.what());
    throw;
  }
}

DataParallelOptions DataParallelFromFlags(const std::shared_ptr<Communicator>& ranks, Place place) {
  const std::string order = place.is_cpu() ? "ranks" : "fast";
  DataParallelOptions options = {
      .communicator = ranks,
      .order = SumOrderFromName(FLAGS_reduction == "auto" ? order : FLAGS_reduction),
      .bucket_bytes = FLAGS_bucket_bytes,
      .overlap = OverlapFromName(FLAGS_overlap),
      .shard_optimizer = FLAGS_shard_optimizer,
      .sync_batch_norm = FLAGS_sync_batch_norm};
  if (ranks != nullptr && !place.is_cpu()) {
    options.device_communicator = MakeNcclRank(ranks, place, FLAGS_collective_timeout);
  }
  return options;
}

void SetThreads(int32_t threads, Communicator* ranks) {
  omp_set_num_threads(threads > 0 ? threads : ThreadsOfRank(ranks));
}

}  // namespace skiff::models
