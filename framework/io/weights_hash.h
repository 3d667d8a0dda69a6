// A fingerprint of weights, which tells whether two runs or two files hold the same values.
#pragma once

#include <string>
#include <vector>

#include "framework/tensor/scope.h"

namespace skiff {

// Returns sixteen hexadecimal digits: the 64-bit FNV-1a hash (offset basis 0xcbf29ce484222325,
// prime 0x100000001b3) over, for each name in ascending order: uint64 length of the name, the name,
// int32 dtype, uint64 rank, int64 dims, the elements row-major; all little-endian. LoD isn't
// included. The hash is the same on all machines and in all versions. Throws Error (kNotFound) for
// a name that the scope doesn't hold, (kAlreadyExists) for a name given twice, and
// (kFailedPrecondition) for a tensor without storage.
std::string WeightsHash(const Scope& scope, std::vector<std::string> names);

}  // namespace skiff
