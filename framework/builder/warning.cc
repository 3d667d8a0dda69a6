#include "framework/builder/warning.h"

#include <cstdio>
#include <mutex>
#include <utility>

namespace skiff {
namespace {

struct SharedSink {
  std::mutex mutex;
  WarningSink sink = [](const std::string& message) {
    std::fprintf(stderr, "warning: %s\n", message.c_str());
  };
};

SharedSink& Shared() {
  static auto& shared = *new SharedSink;
  return shared;
}

}  // namespace

void Warn(const std::string& message) {
  WarningSink sink;
  {
    const std::lock_guard lock(Shared().mutex);
    sink = Shared().sink;
  }
  // Without the mutex: the sink may wait for another thread, which may warn as well. Python's sink
  // waits for the interpreter.
  if (sink) sink(message);
}

WarningSink SetWarningSink(WarningSink sink) {
  const std::lock_guard lock(Shared().mutex);
  return std::exchange(Shared().sink, std::move(sink));
}

}  // namespace skiff
