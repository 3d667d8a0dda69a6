// Cases of memory-bound operators, each on arrays of 64 MiB: more than the caches of common
// processors hold.
#pragma once

#include "tests/harness/op_case.h"

namespace skiff {

// Returns cases named by shape; compare_with_torch.py has the same operation of PyTorch for each.
// Values are generated on first use and freed with the case, so moving a case out of the list
// bounds the memory.
harness::CaseList MemoryCases();

}  // namespace skiff
