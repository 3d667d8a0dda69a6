// What a rank uses of its host, which it shares with other ranks.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/place.h"
#include "framework/comm/communicator.h"

namespace skiff {

// Returns the threads of each rank if nobody has said a number: OMP_NUM_THREADS if that is set,
// otherwise the cores of the host, shared by its ranks, of the host that has the fewest for each.
// The same on all ranks, since the bits of results depend on it. nullptr: of a single rank. All
// ranks call it; throws what Exchange throws.
int32_t ThreadsOfRank(Communicator* ranks);

// Returns the place of a name, as Place::FromName. Of several ranks, "cuda" is the device with the
// number that the rank has among the ranks of its host.
Place PlaceOfRank(const std::string& name, const World& world);

}  // namespace skiff
