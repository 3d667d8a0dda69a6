// The marks that each TokenVocabulary begins with, and their ids.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace skiff::text {

inline constexpr int64_t kBeginId = 0;    // before the first token of a target
inline constexpr int64_t kEndId = 1;      // after the last one
inline constexpr int64_t kUnknownId = 2;  // a token that isn't in the vocabulary
inline constexpr std::array<std::string_view, 3> kMarks = {"<s>", "</s>", "<unk>"};  // by id

}  // namespace skiff::text
