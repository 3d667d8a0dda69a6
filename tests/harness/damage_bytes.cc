#include "tests/harness/damage_bytes.h"

#include <cstdint>

#include "tests/harness/wire_bytes.h"

namespace skiff {
namespace {

enum class Harm { kBit, kByte, kLoss, kRepetition, kNumber };
constexpr size_t kHarms = 5;

}  // namespace

std::string DamageBytes(std::string bytes, std::mt19937* random) {
  const auto below = [random](size_t limit) { return (*random)() % limit; };
  for (size_t harms = 1 + below(4); harms > 0 && !bytes.empty(); --harms) {
    const size_t at = below(bytes.size());
    switch (static_cast<Harm>(below(kHarms))) {
      case Harm::kBit:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case Harm::kByte:
        bytes[at] = static_cast<char>(below(256));
        break;
      case Harm::kLoss:
        bytes.erase(at, 1 + below(8));
        break;
      case Harm::kRepetition: {
        const std::string piece = bytes.substr(at, 1 + below(64));
        bytes.insert(below(bytes.size()), piece);
        break;
      }
      case Harm::kNumber:
        bytes.insert(at, Varint(uint64_t{1} << below(64)));
        break;
    }
  }
  return bytes;
}

}  // namespace skiff
