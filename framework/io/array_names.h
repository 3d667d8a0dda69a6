// Which arrays of a file to read. Files of others hold arrays that Skiff can't read beside those
// that it can.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/base/error.h"

namespace skiff {

// The names of the arrays to read; whatever else the file holds isn't looked at. None: all arrays.
using ArrayNames = std::optional<std::vector<std::string>>;

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
