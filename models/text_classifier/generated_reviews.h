// Short reviews that need no files: clauses about one thing each, praise or blame, some negated.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/text/classification_source.h"

namespace skiff::models {

struct GeneratedReviewsOptions {
  int64_t reviews = 4000;
  uint64_t seed = 1;
};

// Returns reviews of 1, 3, 5 or 7 clauses such as "the soup was not very good", with the label 1 if
// most clauses praise and 0 if most blame. Two of five adjectives are negated, so their words alone
// don't tell the label: the order does. A function of the options alone. Throws Error
// (kInvalidArgument) for less than one review.
std::vector<text::LabelledText> GenerateReviews(const GeneratedReviewsOptions& options);

}  // namespace skiff::models
