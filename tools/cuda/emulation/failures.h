// What went wrong in a kernel, or with its memory.
#pragma once

#include <string>

namespace skiff::cuda_emulation {

// Writes to stderr what went wrong, and keeps it for TakeFailure. The process will exit with 1
// whatever else happens, so that nobody overlooks the failure.
void ReportFailure(const std::string& what);

// Returns the first failure that was reported since the last call; empty: there was none.
std::string TakeFailure();

// Writes a message to stderr, and aborts the process. For what leaves no way to go on.
[[noreturn]] void Die(const std::string& what);

}  // namespace skiff::cuda_emulation
