// The intrinsics of x86, for instructions that Highway has no target for; nothing on other
// architectures. A source includes it before Highway.
#pragma once

#if defined(__x86_64__)
// GCC 12 and 13 take the undefined registers in their own header for mistakes, wherever a source
// uses them.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>  // IWYU pragma: export
#endif
