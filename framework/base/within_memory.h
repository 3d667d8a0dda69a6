// An Error for data that the host's memory can't hold.
#pragma once

#include <new>
#include <stdexcept>

#include "framework/base/error.h"

namespace skiff {

// Returns what `body` returns. Where `body` throws std::bad_alloc, or std::length_error for a
// container longer than any may be, throws an Error (kResourceExhausted).
template <typename Body>
decltype(auto) WithinMemory(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    Throw(ErrorCode::kResourceExhausted, "out of memory on the host");
  } catch (const std::length_error&) {
    Throw(ErrorCode::kResourceExhausted,
          "out of memory on the host: a table would be longer than any may be");
  }
}

}  // namespace skiff
