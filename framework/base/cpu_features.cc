#include "framework/base/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr const char* kLimitVariable = "SKIFF_MAX_ISA";

constexpr std::array<std::pair<InstructionSet, std::string_view>, 4> kNames = {
    {{InstructionSet::kBaseline, "baseline"},
     {InstructionSet::kAvx2, "avx2"},
     {InstructionSet::kAvx512, "avx512"},
     {InstructionSet::kAvx512Bf16, "avx512_bf16"}}};

InstructionSet LimitOfEnvironment() {
  const char* text = std::getenv(kLimitVariable);
  if (text == nullptr || *text == '\0') return kNames.back().first;
  for (const auto& [set, name] : kNames) {
    if (name == text) return set;
  }
  Throw(ErrorCode::kInvalidArgument, "environment variable ", kLimitVariable, "=\"", text,
        "\": expected baseline, avx2, avx512 or avx512_bf16");
}

}  // namespace

std::string_view InstructionSetName(InstructionSet set) {
  return kNames.at(static_cast<size_t>(set)).second;
}

InstructionSet ProcessorInstructionSet() {
#if defined(__x86_64__)
  // The builtins also check that the system saves the registers. The AVX-512 code of Highway and
  // oneDNN needs BW in addition to F.
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    // Kernels for bfloat16 use short vectors, too.
    const bool has_bf16 = __builtin_cpu_supports("avx512bf16") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return has_bf16 ? InstructionSet::kAvx512Bf16 : InstructionSet::kAvx512;
  }
  if (__builtin_cpu_supports("avx2")) return InstructionSet::kAvx2;
#endif
  return InstructionSet::kBaseline;
}

InstructionSet UsedInstructionSet() {
  // Once per process: plans, prepared kernels and blocked tensors must not disagree.
  static const InstructionSet used = std::min(ProcessorInstructionSet(), LimitOfEnvironment());
  return used;
}

bool UsesAvx512Bf16() { return UsedInstructionSet() >= InstructionSet::kAvx512Bf16; }

int32_t PreferredChannelBlock() {
  switch (UsedInstructionSet()) {
    case InstructionSet::kAvx512Bf16:
    case InstructionSet::kAvx512:
      return 16;
    case InstructionSet::kAvx2:
      return 8;
    case InstructionSet::kBaseline:
      break;
  }
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
