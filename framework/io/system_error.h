// Failures of the system as Errors.
#pragma once

#include <string>
#include <string_view>

namespace skiff {

// Throws the Error for this value of errno: "<action> <path>: <reason>". The codes: kNotFound if
// a file to read doesn't exist; kAlreadyExists if a name is taken; kResourceExhausted for a full
// disk, for a quota or a limit of file sizes, and for a lack of memory or descriptors; else kIo.
[[noreturn]] void ThrowSystemError(std::string_view action, const std::string& path,
                                   int error_number);

}  // namespace skiff
