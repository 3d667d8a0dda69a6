#include "models/common/rank_setup.h"

#include <set>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/comm/gather.h"
#include "framework/training/prefetching_reader.h"
#include "framework/training/sharded_reader.h"

namespace skiff::models {
namespace {

using training::LastRun;
using training::Reader;

std::unique_ptr<Reader> Share(std::unique_ptr<Reader> reader, const World& world,
                              LastRun last_run) {
  if (world.size > 1) {
    reader = std::make_unique<training::ShardedReader>(std::move(reader), world, last_run);
  }
  return std::make_unique<training::PrefetchingReader>(std::move(reader));
}

}  // namespace

World WorldOf(const Communicator* ranks) { return ranks == nullptr ? World() : ranks->world(); }

std::unique_ptr<Reader> TrainingShare(std::unique_ptr<Reader> reader, const World& world) {
  return Share(std::move(reader), world, LastRun::kFilled);
}

std::unique_ptr<Reader> EvaluationShare(std::unique_ptr<Reader> reader, const World& world) {
  return Share(std::move(reader), world, LastRun::kPartial);
}

int64_t MergedSteps(int64_t global_batch, int64_t batch_size, int32_t ranks) {
  SKIFF_ENFORCE(batch_size >= 1, kInvalidArgument, "batch_size = ", batch_size,
                ": expected at least 1");
  const int64_t run = MultiplyCounts(batch_size, ranks);
  SKIFF_ENFORCE(global_batch >= 1 && global_batch % run == 0, kInvalidArgument,
                "global_batch = ", global_batch, ": expected a multiple of ", run, ", ", ranks,
                ranks == 1 ? " rank" : " ranks", " with a batch_size of ", batch_size);
  return global_batch / run;
}

std::string TextOfRanks(Communicator* ranks, int64_t merged_steps, int64_t batch_size) {
  if (ranks == nullptr) return "";
  const std::vector<std::string> hosts = GatherTexts(ranks, ranks->world().host);
  const auto host_count = std::ssize(std::set<std::string>(hosts.begin(), hosts.end()));
  const int32_t size = ranks->world().size;
  return StrCat(size, " ranks on ", host_count, host_count == 1 ? " host" : " hosts",
                ", batches of ", size * merged_steps * batch_size, " = ", size, " x ",
                merged_steps == 1 ? "" : StrCat(merged_steps, " x "), batch_size);
}

}  // namespace skiff::models
