#include "tools/cuda/emulation/failures.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "tools/cuda/emulation/options.h"

namespace skiff::cuda_emulation {
namespace {

struct Failures {
  std::mutex mutex;
  int count = 0;
  std::string untold;
};

// Never destroyed: kernels may run until the very end.
Failures& TheFailures() {
  static auto& failures = *new Failures;
  return failures;
}

void FailAtExit() {
  std::fprintf(stderr, "CUDA emulation: %d failures (SKIFF_CUDA_EMULATION=seed=%llu)\n",
               TheFailures().count, static_cast<unsigned long long>(TheOptions().seed));
  std::fflush(nullptr);
  _exit(1);
}

Options ReadOptions() {
  Options options;
  // Each shard of a test in Bazel has a seed of its own.
  if (const char* shard = std::getenv("TEST_SHARD_INDEX")) {
    options.seed += std::strtoull(shard, nullptr, 10);
  }
  const char* text = std::getenv("SKIFF_CUDA_EMULATION");
  std::string rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string option = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    const size_t equals = option.find('=');
    const std::string name = option.substr(0, equals);
    const std::string number = equals == std::string::npos ? "" : option.substr(equals + 1);
    if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) {
      Die("$SKIFF_CUDA_EMULATION: \"" + option + "\": expected a name, = and a number");
    }
    const uint64_t value = std::strtoull(number.c_str(), nullptr, 10);
    if (name == "seed") {
      options.seed = value;
    } else if (name == "late_us") {
      options.late_us = static_cast<int64_t>(value);
    } else if (name == "hides_memory") {
      options.hides_memory = value != 0;
    } else if (name == "checks_accesses") {
      options.checks_accesses = value != 0;
    } else if (name == "finds_races") {
      options.finds_races = value != 0;
    } else if (name == "has_libraries") {
      options.has_libraries = value != 0;
    } else if (name == "has_nccl") {
      options.has_nccl = value != 0;
    } else if (name == "nccl_fails_at") {
      options.nccl_fails_at = value;
    } else if (name == "devices") {
      options.devices = value;
    } else if (name == "memory_bytes") {
      options.memory_bytes = value;
    } else {
      Die("$SKIFF_CUDA_EMULATION: \"" + name +
          "\": expected seed, late_us, hides_memory, checks_accesses, finds_races, has_libraries, "
          "has_nccl, nccl_fails_at, devices or memory_bytes");
    }
  }
  if (options.devices < 1 || options.devices > 16) {
    Die("$SKIFF_CUDA_EMULATION: " + std::to_string(options.devices) + " devices: expected 1 to 16");
  }
  return options;
}

}  // namespace

const Options& TheOptions() {
  static const Options options = ReadOptions();
  return options;
}

void ReportFailure(const std::string& what) {
  Failures& failures = TheFailures();
  const std::lock_guard lock(failures.mutex);
  std::fprintf(stderr, "CUDA emulation: %s\n", what.c_str());
  if (failures.count++ == 0) std::atexit(FailAtExit);
  if (failures.untold.empty()) failures.untold = what;
}

std::string TakeFailure() {
  Failures& failures = TheFailures();
  const std::lock_guard lock(failures.mutex);
  return std::exchange(failures.untold, {});
}

void Die(const std::string& what) {
  std::fprintf(stderr, "CUDA emulation: %s\n", what.c_str());
  std::abort();
}

}  // namespace skiff::cuda_emulation
