// Counts every operator new of the process. A program that links this has its operator new and
// delete replaced, in all their forms.
#pragma once

#include <cstdint>

namespace skiff::harness {

struct AllocationCount {
  int64_t own = 0;     // from anywhere but oneDNN's library
  int64_t onednn = 0;  // from code of oneDNN's library itself
};

// Since the start of the process.
AllocationCount CountAllocations();

}  // namespace skiff::harness
