// Warnings of the builder to the author of a program, about a probable mistake.
#pragma once

#include <functional>
#include <string>

namespace skiff {

using WarningSink = std::function<void(const std::string&)>;

// Hands a warning to the sink. Passes on exceptions of the sink.
void Warn(const std::string& message);

// Replaces the sink and returns the old sink, which other threads may still be calling. All threads
// share the sink, and several threads may call it at once. The default sink writes "warning: …" to
// stderr. An empty sink drops warnings. An exception of the sink comes out of the layer that warns,
// which then hasn't appended its own op.
WarningSink SetWarningSink(WarningSink sink);

}  // namespace skiff
