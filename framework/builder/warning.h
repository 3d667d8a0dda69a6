// Warnings of the builder to whoever writes a program: it may not mean what it says.
#pragma once

#include <functional>
#include <string>

namespace skiff {

using WarningSink = std::function<void(const std::string&)>;

// Hands a warning to the sink. Throws what the sink throws.
void Warn(const std::string& message);

// Replaces the sink and returns the one before, which calls of other threads may still be in. All
// threads share the sink, and several may call it at once. The first one writes "warning: …" to
// stderr. An empty one drops warnings. What the sink throws comes out of the layer that warns,
// which then hasn't appended its own op.
WarningSink SetWarningSink(WarningSink sink);

}  // namespace skiff
