// The one exception type of Skiff, and the way to raise it.
//
// A mistake of the user (a wrong shape, a missing file, a bad attribute) throws Error. A message
// says where, what was found, what was expected: `softmax: axis = 3 is outside [-2, 1] for X of
// shape [64, 10]`. Code that knows more of the place (the executor knows op, block and creation
// site) adds it with WithContext.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace skiff {

enum class ErrorCode {
  kInvalidArgument,     // a value that the call can't accept
  kNotFound,            // a name that isn't there
  kAlreadyExists,       // a name that is there twice
  kOutOfRange,          // an index or a count beyond its bounds
  kFailedPrecondition,  // right call, wrong moment
  kUnimplemented,       // legal, but not supported
  kResourceExhausted,   // memory or disk is full
  kDataLoss,            // a file is truncated or corrupt
  kIo,                  // the system refused to read or write
};

// "INVALID_ARGUMENT", "NOT_FOUND", …
std::string_view ErrorCodeName(ErrorCode code);

class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  ErrorCode code() const { return code_; }

  // The same error with `context: ` in front of its message.
  Error WithContext(std::string_view context) const {
    return Error(code_, std::string(context) + ": " + what());
  }

 private:
  ErrorCode code_;
};

// Concatenates anything that has operator<<.
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::ostringstream stream;
  (stream << ... << args);
  return stream.str();
}

// Joins the elements of a range: Join({1, 2}, ", ") is "1, 2".
template <typename Range>
std::string Join(const Range& range, std::string_view separator) {
  std::ostringstream stream;
  bool first = true;
  for (const auto& element : range) {
    if (!first) stream << separator;
    stream << element;
    first = false;
  }
  return stream.str();
}

template <typename... Args>
[[noreturn]] void Throw(ErrorCode code, const Args&... args) {
  throw Error(code, StrCat(args...));
}

}  // namespace skiff

// Throws Error(code, StrCat(rest…)) unless the condition holds. The message is built on failure
// only.
#define SKIFF_ENFORCE(condition, code, ...)                  \
  do {                                                       \
    if (!(condition)) [[unlikely]]                           \
      ::skiff::Throw(::skiff::ErrorCode::code, __VA_ARGS__); \
  } while (false)
