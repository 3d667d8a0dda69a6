// Files as bad disks, broken transfers and ill will leave them.
#pragma once

#include <random>
#include <string>

namespace skiff {

// One to four harms: a bit turned, a byte changed, bytes lost, a piece repeated elsewhere, a number
// (as protobuf writes them, up to 2^63) put in. The same for the same state of `random`.
std::string DamageBytes(std::string bytes, std::mt19937* random);

}  // namespace skiff
