// The results of running a case.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "framework/base/place.h"

namespace skiff::harness {

// Kernels that take fewer rows than they were prepared for, as "relu/plain/float32".
struct RowKernels {
  std::set<std::string> all;
  // Those that a case can check: the op accepts more rows.
  std::set<std::string> checked;
};

struct RunnerOptions {
  // Where kernels run. On a place other than the CPU, cases run with a single thread and
  // instruction set, results are also compared with the CPU's, and gradient rules aren't checked
  // again.
  Place place = Place::Cpu();
  // Only determines which kernels would run (CaseReport::kernels).
  bool choose_only = false;
  // With choose_only: if given, kernels are also prepared (unless they are known to be checked),
  // and those that take fewer rows are added here.
  RowKernels* row_kernels = nullptr;
  std::vector<int> threads = {1, 2, 3};
  // Blocked layouts to try if the op and a kernel allow them.
  std::vector<int32_t> channel_blocks = {8, 16};
  // Whether to run on every instruction set of the machine that Highway kernels are compiled for.
  bool every_instruction_set = true;
};

struct CaseReport {
  // One message per failure: case, dtype, candidate, threads, the result found and the result
  // expected.
  std::vector<std::string> failures;
  // The number of kernel calls.
  int64_t runs = 0;
  // Those with fewer rows than the kernel was prepared for.
  int64_t runs_with_fewer_rows = 0;
  // Every kernel that ran, as "relu/plain/float32".
  std::set<std::string> kernels;
};

}  // namespace skiff::harness
