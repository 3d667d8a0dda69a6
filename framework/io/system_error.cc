#include "framework/io/system_error.h"

#include <cerrno>
#include <system_error>

#include "framework/base/error.h"

namespace skiff {
namespace {

ErrorCode CodeOf(int error_number) {
  switch (error_number) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EEXIST:
      return ErrorCode::kAlreadyExists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::kResourceExhausted;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

void ThrowSystemError(std::string_view action, const std::string& path, int error_number) {
  Throw(CodeOf(error_number), action, " ", path, ": ",
        std::generic_category().message(error_number));
}

}  // namespace skiff
