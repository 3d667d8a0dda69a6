#include "tools/benchmark/command_main.h"

#include <gflags/gflags.h>

#include <cstdio>

#include "framework/base/error.h"

namespace skiff {

int CommandMain(int argc, char** argv, const char* usage, int (*run)()) {
  gflags::SetUsageMessage(usage);
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  try {
    return run();
  } catch (const Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

}  // namespace skiff
