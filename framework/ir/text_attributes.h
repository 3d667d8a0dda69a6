// Parses what the text formats of programs and plans have in common: attributes, dtypes, lists of
// integers, and where an op starts. Internal to framework/ir and framework/plan.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/dtype.h"
#include "framework/ir/attribute.h"
#include "framework/ir/text_scanner.h"

namespace skiff {

// Each reads from where the scanner is and throws the scanner's Errors.

// {name = value, …}
AttributeMap ParseAttributes(TextScanner* scan);
// float32, int64, …
DType ParseDType(TextScanner* scan);
// [1, -2, …]
std::vector<int64_t> ParseIntegers(TextScanner* scan);

// Returns whether the '{' where the scanner is starts the outputs of an op, `{}` or `{Out: …`,
// rather than attributes, `{a = …`.
bool IsOpNext(TextScanner scan);

}  // namespace skiff
