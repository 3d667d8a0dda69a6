// Reads the arrays of a file that the user names.
#pragma once

#include "framework/base/error.h"
#include "framework/io/api/tensor_map.h"

namespace skiff {

// Returns read(). If all arrays were to be read and one isn't supported, the Error
// (kUnimplemented) says how to leave it out.
template <typename Read>
auto ReadNamed(const ArrayNames& names, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (names.has_value() || error.code() != ErrorCode::kUnimplemented) throw;
    Throw(error.code(), error.what(), "; to leave it out, name the arrays to read");
  }
}

}  // namespace skiff
