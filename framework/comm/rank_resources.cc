#include "framework/comm/rank_resources.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "framework/base/parallel.h"
#include "framework/base/str_cat.h"
#include "framework/comm/gather.h"

namespace skiff {

int32_t CoresOfRank(const World& world) {
  const auto of_host = static_cast<int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  // If a launcher has bound the rank to cores already, omp_get_num_procs() counts these.
  return std::min(omp_get_num_procs(), std::max(1, of_host / world.local_size));
}

int32_t ThreadsOfRank(Communicator* ranks) {
  const bool is_said = std::getenv("OMP_NUM_THREADS") != nullptr;
  const int32_t own =
      is_said ? omp_get_max_threads() : CoresOfRank(ranks == nullptr ? World() : ranks->world());
  return std::ranges::min(GatherNumbers(ranks, own));
}

Place PlaceOfRank(const std::string& name, const World& world) {
  const bool is_choice = name == "cuda" && world.size > 1;
  return Place::FromName(is_choice ? StrCat(name, ":", world.local_rank) : name);
}

}  // namespace skiff
