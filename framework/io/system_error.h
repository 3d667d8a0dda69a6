// Failures of the system as Errors.
#pragma once

#include <string>
#include <string_view>

namespace skiff {

// Throws the Error for this value of errno: "<action> <path>: <reason>". Its code is kNotFound for
// a file to read that doesn't exist, kAlreadyExists for a name that is taken, kResourceExhausted
// for a full disk, quota or file-size limit and for want of memory or descriptors, kIo for all
// others.
[[noreturn]] void ThrowSystemError(std::string_view action, const std::string& path,
                                   int error_number);

}  // namespace skiff
