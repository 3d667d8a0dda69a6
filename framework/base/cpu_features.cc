#include "framework/base/cpu_features.h"

namespace skiff {

int32_t PreferredChannelBlock() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) return 16;
  if (__builtin_cpu_supports("avx2")) return 8;
#endif
  return 1;
}

}  // namespace skiff
