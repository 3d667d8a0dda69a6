#include "framework/base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <array>
#include <cstring>

namespace skiff {

int32_t PreferredChannelBlock() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) return 16;
  if (__builtin_cpu_supports("avx2")) return 8;
#endif
  return 1;
}

std::string CpuModelName() {
#if defined(__x86_64__)
  // Three leaves of CPUID hold 48 characters.
  constexpr unsigned kFirstLeaf = 0x80000002;
  constexpr unsigned kLeaves = 3;
  std::array<unsigned, 4 * kLeaves> registers{};
  for (unsigned i = 0; i < kLeaves; ++i) {
    unsigned* four = registers.data() + 4 * i;
    if (__get_cpuid(kFirstLeaf + i, four, four + 1, four + 2, four + 3) == 0) return "unknown";
  }
  std::array<char, sizeof(registers) + 1> text{};
  std::memcpy(text.data(), registers.data(), sizeof(registers));
  const std::string name = text.data();
  const size_t begin = name.find_first_not_of(' ');
  if (begin == std::string::npos) return "unknown";
  return name.substr(begin, name.find_last_not_of(' ') + 1 - begin);
#else
  return "unknown";
#endif
}

}  // namespace skiff
