#include "framework/tensor/ragged.h"

#include <string>

#include "framework/base/api/error.h"
#include "framework/base/error.h"
#include "framework/base/str_cat.h"
#include "framework/tensor/tensor.h"

namespace skiff {
namespace {

std::vector<uint64_t> LevelOffsets(size_t level, const std::vector<int64_t>& lengths) {
  SKIFF_ENFORCE(!lengths.empty(), kInvalidArgument, "LoD level ", level,
                ": no lengths, expected that of one sequence at least");
  try {
    return OffsetsOf(lengths);
  } catch (const Error& error) {
    throw error.WithContext(StrCat("LoD level ", level));
  }
}

}  // namespace

LoD LoDOfLengths(const LevelLengths& lengths) {
  LoD lod;
  for (size_t level = 0; level < lengths.size(); ++level) {
    lod.push_back(LevelOffsets(level, lengths[level]));
    if (level == 0) continue;
    const uint64_t expected = lengths[level].size();
    const uint64_t found = lod[level - 1].back();
    SKIFF_ENFORCE(found == expected, kInvalidArgument, "LoD level ", level - 1,
                  ": the lengths sum to ", found, ", expected ", expected,
                  ", the sequences of level ", level);
  }
  return lod;
}

LevelLengths LengthsOf(const LoD& lod) {
  LevelLengths lengths;
  for (const std::vector<uint64_t>& offsets : lod) {
    std::vector<int64_t>& of_level = lengths.emplace_back();
    for (size_t i = 1; i < offsets.size(); ++i) {
      of_level.push_back(static_cast<int64_t>(offsets[i] - offsets[i - 1]));
    }
  }
  return lengths;
}

Tensor WithLengths(Tensor rows, const LevelLengths& lengths) {
  rows.set_lod(LoDOfLengths(lengths));
  return rows;
}

namespace internal {

int64_t RowsOfSequence(size_t index, size_t elements, int64_t row_elements) {
  const auto count = static_cast<int64_t>(elements);
  SKIFF_ENFORCE(row_elements > 0 && count % row_elements == 0, kInvalidArgument, "sequence ", index,
                " has ", count, " elements, expected rows of ", row_elements, " each");
  return count / row_elements;
}

}  // namespace internal

}  // namespace skiff
