// Warnings of the builder to whoever writes a program: it may not mean what it says.
#pragma once

#include <functional>
#include <string>

namespace skiff {

using WarningSink = std::function<void(const std::string&)>;

// Hands a warning to the sink.
void Warn(const std::string& message);

// Replaces the sink, which all threads share and call one at a time, and returns the one before.
// The first one writes "warning: …" to stderr. An empty one drops warnings. What it throws comes
// out of the call that warns, which then has changed nothing.
WarningSink SetWarningSink(WarningSink sink);

}  // namespace skiff
