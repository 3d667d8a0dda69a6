// How to raise an Error. Code that knows more of the place (the executor knows op, block and
// creation site) adds it with WithContext.
#pragma once

#include <string>

#include "framework/base/api/error.h"
#include "framework/base/str_cat.h"

namespace skiff {

// Throws Error(code, message).
[[noreturn]] void ThrowError(ErrorCode code, const std::string& message);

// Throws Error(code, StrCat(args...)).
template <typename... Args>
[[noreturn, gnu::cold, gnu::noinline]] void Throw(ErrorCode code, const Args&... args) {
  ThrowError(code, StrCat(args...));
}

}  // namespace skiff

// Throws Error(code, StrCat(rest…)) unless the condition holds. The message is built on failure
// only.
#define SKIFF_ENFORCE(condition, code, ...)                  \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::skiff::Throw(::skiff::ErrorCode::code, __VA_ARGS__); \
  } while (false)
