#include "framework/base/error.h"

namespace skiff {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case ErrorCode::kNotFound:
      return "NOT_FOUND";
    case ErrorCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case ErrorCode::kOutOfRange:
      return "OUT_OF_RANGE";
    case ErrorCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case ErrorCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case ErrorCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case ErrorCode::kDataLoss:
      return "DATA_LOSS";
    case ErrorCode::kIo:
      return "IO";
  }
  return "UNKNOWN";
}

// Out of line, so that each SKIFF_ENFORCE adds only a call to its function.
void ThrowError(ErrorCode code, const std::string& message) { throw Error(code, message); }

}  // namespace skiff
