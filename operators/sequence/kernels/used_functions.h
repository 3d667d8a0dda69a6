// Tables of functions that Highway compiles once per instruction set.
//
//   template <typename T>
//   struct Table {                       // in a header
//     static Table Used();               // those for the processor's instruction set
//     void (*function)(…);
//   };
//
// The source has, in HWY_NAMESPACE, Functions(), which returns a pair: the tables for float and
// double. Where HWY_ONCE, it defines Used() by SKIFF_USED_FUNCTIONS(Table).
#pragma once

#include <utility>

#define SKIFF_USED_FUNCTIONS(Table)                               \
  HWY_EXPORT(Functions);                                          \
  template <typename T>                                           \
  Table<T> Table<T>::Used() {                                     \
    return std::get<Table<T>>(HWY_DYNAMIC_DISPATCH(Functions)()); \
  }                                                               \
  template struct Table<float>;                                   \
  template struct Table<double>
