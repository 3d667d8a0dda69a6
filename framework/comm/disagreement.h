// Where ranks that should have the same text have other texts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/comm/communicator.h"

namespace skiff {

// A rank that has another text than rank 0.
struct Disagreement {
  std::string rank;  // World::Text
  std::string text;
  std::string of_first;  // the text of rank 0
};

// Returns the first rank whose text has another hash than rank 0's; none if all are equal. Only the
// two ranks send their texts, which may be long. Both texts may be equal if the ranks run different
// builds. All ranks call it; nullptr: a single rank. Throws what Exchange throws.
std::optional<Disagreement> FindDisagreement(Communicator* communicator, const std::string& text);

// Where the lines of a text first differ from the expected ones.
struct LineDifference {
  int64_t line = 0;   // from 0
  std::string found;  // the lines, in quotes; or `missing`
  std::string expected;
};

// Returns the difference; of equal texts, the place behind the last line.
LineDifference FirstDifferentLine(const std::string& text, const std::string& expected);

}  // namespace skiff
