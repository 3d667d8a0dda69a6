// Tables of functions that Highway compiles once per instruction set.
//
//   template <typename T>
//   struct Table {                       // in a header
//     static Table Used();               // those for the processor's instruction set
//     void (*function)(…);
//   };
//
// The source has, in HWY_NAMESPACE, Functions(), which returns a pair: the tables for float and
// double. Where HWY_ONCE, it defines Used() by SKIFF_USED_FUNCTIONS(Table). If there is a table for
// bfloat16, Functions() returns a tuple of all three, and the macro is SKIFF_USED_WITH_HALF(Table).
#pragma once

#include <tuple>
#include <utility>

#include "operators/common/half.h"

#define SKIFF_USED_FUNCTIONS(Table)                               \
  HWY_EXPORT(Functions);                                          \
  template <typename T>                                           \
  Table<T> Table<T>::Used() {                                     \
    return std::get<Table<T>>(HWY_DYNAMIC_DISPATCH(Functions)()); \
  }                                                               \
  template struct Table<float>;                                   \
  template struct Table<double>

#define SKIFF_USED_WITH_HALF(Table) \
  SKIFF_USED_FUNCTIONS(Table);      \
  template struct Table<BFloat16>
