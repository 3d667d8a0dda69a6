// What a rank uses of its host, which it shares with other ranks.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/place.h"
#include "framework/comm/communicator.h"

namespace skiff {

// Returns how many cores the rank has: the cores to which a launcher has bound it (on which the
// calling thread may run), but at most its share of the host's cores. At least 1.
int32_t CoresOfRank(const World& world);

// Returns the threads of each rank if nobody has said a number: the fewest that a rank has. A rank
// has CoresOfRank; but if OMP_NUM_THREADS is set, omp_get_max_threads(), which is that number
// unless the process has called omp_set_num_threads. The same on all ranks, since the bits of
// results depend on it. nullptr: of a single rank. All ranks call it; throws what Exchange throws.
int32_t ThreadsOfRank(Communicator* ranks);

// Returns the place of a name, as Place::FromName. Of several ranks, "cuda" is the device with the
// number that the rank has among the ranks of its host.
Place PlaceOfRank(const std::string& name, const World& world);

}  // namespace skiff
