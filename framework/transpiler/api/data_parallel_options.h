// How several ranks run a program together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace skiff {

class Communicator;

// The order in which the gradients of the ranks are added.
enum class SumOrder {
  kRanks,  // ((g0 + g1) + g2) + …: the bits are those of one process with gradient_merge
  kFast,   // whatever order is fastest: the last bits may differ from run to run
};

// Parses "ranks" or "fast". Throws Error (kInvalidArgument) for any other name.
SumOrder SumOrderFromName(const std::string& name);
// Returns "ranks" or "fast".
std::string SumOrderName(SumOrder order);

// Whether collective ops run beside the others: on a device on a second stream, on the CPU in a
// second thread. The results are the same bits. Updates then come last, so all gradients are in
// memory at once.
enum class Overlap {
  kAuto,  // on a device, and on the CPU if a rank has at least 4 cores
  kOn,
  kOff,
};

// Parses "auto", "on" or "off". Throws Error (kInvalidArgument) for any other name.
Overlap OverlapFromName(const std::string& name);
// Returns "auto", "on" or "off".
std::string OverlapName(Overlap overlap);

struct DataParallelOptions {
  // Connects the ranks on the CPU. nullptr: the program runs alone. With several ranks, the pass
  // data_parallel runs, which sums gradients over the ranks.
  std::shared_ptr<Communicator> communicator = {};
  // Connects the devices of the ranks. Programs that several ranks run on devices need it; those on
  // the CPU don't use it.
  std::shared_ptr<Communicator> device_communicator = {};
  SumOrder order = SumOrder::kRanks;
  // A bucket is a list of gradients that are summed at once, and has at least so many bytes. 0:
  // each gradient is summed alone.
  int64_t bucket_bytes = int64_t{25} << 20;
  Overlap overlap = Overlap::kAuto;
  // Whether each rank keeps, and updates by, only its part of the optimizer states (ZeRO-1).
  bool shard_optimizer = false;
  // Whether batch norms take the statistics of the batches of all ranks, as if they were one batch,
  // and not each rank those of its own.
  bool sync_batch_norm = false;
};

}  // namespace skiff
