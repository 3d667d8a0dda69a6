#include "framework/comm/rank_resources.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "framework/base/parallel.h"
#include "framework/base/str_cat.h"
#include "framework/comm/gather.h"

namespace skiff {

int32_t ThreadsOfRank(Communicator* ranks) {
  int32_t own = omp_get_max_threads();
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    // A launcher may have bound the rank to cores already, which omp_get_num_procs() counts.
    const auto cores = static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
    const int32_t local_size = ranks == nullptr ? 1 : ranks->world().local_size;
    own = std::min(omp_get_num_procs(), std::max(1, cores / local_size));
  }
  return std::ranges::min(GatherNumbers(ranks, own));
}

Place PlaceOfRank(const std::string& name, const World& world) {
  const bool is_choice = name == "cuda" && world.size > 1;
  return Place::FromName(is_choice ? StrCat(name, ":", world.local_rank) : name);
}

}  // namespace skiff
