// Cases of memory-bound operators, each on arrays of 64 MiB: more than the caches of common
// processors hold.
#pragma once

#include "tests/harness/op_case.h"

namespace skiff {

// Returns cases named by shape; compare_with_torch.py knows each of them. Their values are made on
// first use: copy a case, and its arrays are freed with the copy.
harness::CaseList MemoryCases();

}  // namespace skiff
