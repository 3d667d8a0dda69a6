#include "framework/executor/lowering/block_arrays.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/rows/row_counts.h"

namespace skiff {
namespace {

// Widens a LoD to the most sequences of each level, and the most rows.
void WidenFor(const LoD& lod, std::shared_ptr<const LoDGroup>* group) {
  const LoD& known = (*group)->offsets;
  std::vector<int64_t> most, counts;
  AppendCounts(known, &most);
  AppendCounts(lod, &counts);
  for (size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], counts[i]);
  LoD wide = WidenLoD(known, most);
  if (wide == known) return;
  *group = std::make_shared<const LoDGroup>(LoDGroup{.offsets = std::move(wide)});
}

}  // namespace

bool BlockArrays::IsTiedTo(const std::string& outer) const {
  return std::ranges::any_of(tied_, [&](const auto& tied) { return tied.second == outer; });
}

const std::string& BlockArrays::OuterName(const std::string& name) const {
  const auto tied = tied_.find(name);
  return tied == tied_.end() ? name : tied->second;
}

const ArrayMeta* BlockArrays::Find(const std::string& outer) const {
  const auto known = metas_.find(outer);
  return known == metas_.end() ? nullptr : &known->second;
}

void BlockArrays::NoteRead(const std::string& name) {
  const ArrayMeta* known = Find(OuterName(name));
  reads_.emplace(OuterName(name), known == nullptr ? std::nullopt : std::optional(*known));
}

bool BlockArrays::AreAsRead() const {
  return std::ranges::all_of(reads_, [&](const auto& read) {
    const auto& [name, then] = read;
    const ArrayMeta* now = Find(name);
    if (now == nullptr || !then) return now == nullptr;
    return CanReplace(*now, *then);
  });
}

const TensorMeta& BlockArrays::AddElement(std::string_view op_type, const std::string& name,
                                          const TensorMeta& meta) {
  auto [known, is_new] = metas_.emplace(OuterName(name), ArrayMeta{.element = meta});
  TensorMeta& element = known->second.element;
  SKIFF_ENFORCE(element.dtype == meta.dtype && element.lod_level == meta.lod_level &&
                    element.shape.rank() == meta.shape.rank(),
                kInvalidArgument, op_type, " would write ", meta.dtype, " ", meta.shape, " with ",
                meta.lod_level, " LoD levels to the array \"", name, "\", whose elements are ",
                element.dtype, " ", element.shape, " with ", element.lod_level);
  for (int axis = 1; axis < meta.shape.rank(); ++axis) {
    if (element.shape[axis] != meta.shape[axis]) element.shape[axis] = -1;
  }
  if (meta.shape.rank() > 0 && element.shape[0] != meta.shape[0]) {
    known->second.rows_vary = true;
    element.shape[0] = std::max(element.shape[0], meta.shape[0]);
  }
  if (meta.lod != nullptr && element.lod != nullptr && !is_new) {
    WidenFor(meta.lod->offsets, &element.lod);
  }
  return element;
}

}  // namespace skiff
