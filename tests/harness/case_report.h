// What a case has shown.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "framework/base/place.h"

namespace skiff::harness {

struct RunnerOptions {
  // Where kernels run. Elsewhere than on the CPU one thread and instruction set are enough, results
  // are also compared with those of the CPU, and gradient rules count as checked.
  Place place = Place::Cpu();
  // Only finds which kernels there are to run (CaseReport::kernels).
  bool choose_only = false;
  std::vector<int> threads = {1, 2, 3};
  // Blocked layouts that are tried where the op and a kernel allow them.
  std::vector<int32_t> channel_blocks = {8, 16};
  // Also run on every instruction set of the machine that Highway kernels are compiled for.
  bool every_instruction_set = true;
};

struct CaseReport {
  // One message a failure: case, dtype, candidate, threads, what was found and expected.
  std::vector<std::string> failures;
  // Calls of a kernel.
  int64_t runs = 0;
  // "relu/plain/float32" of every kernel that ran.
  std::set<std::string> kernels;
};

}  // namespace skiff::harness
