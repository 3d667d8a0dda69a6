// Dates with their form in ISO 8601: text to translate that needs no file.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/text/parallel_text.h"

namespace skiff::models {

// Returns dates, as people write them, with their form in ISO 8601: {"the 3rd of May, 1998",
// "1998-05-03"}. Years are 1900 to 2049, days 1 to 28. Each seed has its own; no two sources are
// equal.
std::vector<text::TextPair> GenerateDates(int64_t count, uint64_t seed);

}  // namespace skiff::models
