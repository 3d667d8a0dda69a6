// The one exception type of Skiff.
//
// A mistake of the user (a wrong shape, a missing file, a bad attribute) throws Error. Each message
// says where, what was found and what was expected: `softmax: axis = 3 is outside [-2, 1] for X of
// shape [64, 10]`.
#pragma once

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

}  // namespace skiff
