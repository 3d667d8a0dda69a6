// What went wrong in a kernel, or with its memory.
#pragma once

#include <string>

namespace skiff::cuda_emulation {

// Tells it at once on stderr, then to whoever waits next (TakeFailure), and the process exits with
// an error, so that it can't be overlooked.
void ReportFailure(const std::string& what);

// What was reported since the last call; empty: nothing.
std::string TakeFailure();

// Of this kind there is no way on.
[[noreturn]] void Die(const std::string& what);

}  // namespace skiff::cuda_emulation
