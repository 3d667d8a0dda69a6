// Cases of operators that move more bytes than they compute with, each on arrays of 64 MiB: more
// than the caches of common processors hold.
#pragma once

#include "tests/harness/op_case.h"

namespace skiff {

// Named by shape; compare_with_torch.py knows each of them. Their values are made when they are
// looked at: copy a case, and its arrays go with the copy.
harness::CaseList MemoryCases();

}  // namespace skiff
