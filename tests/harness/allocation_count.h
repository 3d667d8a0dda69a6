// Counts every operator new of the process. Linking this replaces operator new and delete in all
// their forms.
#pragma once

#include <cstdint>

namespace skiff::harness {

struct AllocationCount {
  int64_t own = 0;     // from anywhere but oneDNN's library
  int64_t onednn = 0;  // from code inside oneDNN's library
};

// Returns the counts since the start of the process.
AllocationCount CountAllocations();

}  // namespace skiff::harness
