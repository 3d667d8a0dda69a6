// Where a function is called, for messages about mistakes of the caller.
#pragma once

namespace skiff::internal {

// As std::source_location, without the name of the function, which would be in the program for each
// call.
struct CallSite {
  const char* file = "";
  int line = 0;

  // As a default argument, returns the place of the call.
  static constexpr CallSite Current(const char* file = __builtin_FILE(),
                                    int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace skiff::internal
