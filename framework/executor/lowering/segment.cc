#include "framework/executor/lowering/segment.h"

#include <algorithm>

#include "framework/executor/rows/known_contents.h"

namespace skiff {

bool CanReplace(const ArrayMeta& a, const ArrayMeta& b) {
  const TensorMeta& x = a.element;
  const TensorMeta& y = b.element;
  const bool have_equal_lods =
      x.lod == y.lod || (x.lod != nullptr && y.lod != nullptr && x.lod->offsets == y.lod->offsets);
  return a.rows_vary == b.rows_vary && have_equal_lods && x.shape == y.shape &&
         x.dtype == y.dtype && x.lod_level == y.lod_level;
}

bool CanReplace(const ArrayMetas& a, const ArrayMetas& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && CanReplace(x.second, y.second);
  });
}

bool CanReplace(const PreparedGradients& a, const PreparedGradients& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.instruction.loop == y.second.instruction.loop &&
           x.second.input_names == y.second.input_names;
  });
}

bool CanReplace(const ContentsByName& a, const ContentsByName& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && HaveSameElements(*x.second, *y.second);
  });
}

}  // namespace skiff
