// Loops that are compiled once per instruction set, for float32 and half in memory.
//
//   template <typename T>
//   struct NegateLoops {
//     void (*negate)(const T* from, int64_t count, T* to) = nullptr;
//   };
//   …                                                           // in HWY_NAMESPACE:
//   FloatLoops<NegateLoops> Loops() { return {{Negate<float>}, {Negate<Float16>}, …}; }
//   …                                                           // under HWY_ONCE:
//   HWY_EXPORT(Loops);
//   std::get<NegateLoops<T>>(HWY_DYNAMIC_DISPATCH(Loops)()).negate(from, count, to);
#pragma once

#include <tuple>

#include "operators/common/half.h"

namespace skiff {

template <template <typename> class Loops>
using FloatLoops = std::tuple<Loops<float>, Loops<Float16>, Loops<BFloat16>>;

}  // namespace skiff
