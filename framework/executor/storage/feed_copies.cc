#include "framework/executor/storage/feed_copies.h"

#include <cstring>

#include "framework/base/str_cat.h"
#include "framework/tensor/bools.h"

namespace skiff {
FeedCopies::FeedCopies(const Plan& plan, const DecidingVariables& deciding,
                       const BoundValues& values, SharedArena* arena)
    : arena_(*arena) {
  for (size_t i = 0; i < plan.feeds.size(); ++i) {
    const ValueId feed = plan.feeds[i];
    const std::string& name = plan[feed].name;
    if (!deciding.Contains(name, plan[feed].meta.dtype)) continue;
    const int64_t bytes = StorageBytes(plan[feed]);
    arena_.FeedCopy(name, bytes);
    copies_.push_back({.feed = i,
                       .name = name,
                       .what = StrCat("feed \"", name, "\""),
                       .value = values.Of(feed),
                       .bytes = bytes,
                       .from = {}});
  }
}

void FeedCopies::Bind(const FeedList& feeds) {
  for (Copy& copy : copies_) {
    copy.from = feeds[copy.feed].second;
    *copy.value =
        Tensor(copy.from.shape(), copy.from.dtype(), arena_.FeedCopy(copy.name, copy.bytes));
    copy.value->ShareLoD(copy.from.shared_lod());
  }
}

void FeedCopies::Read() {
  for (const Copy& copy : copies_) {
    const auto bytes = static_cast<size_t>(copy.from.byte_count());
    if (bytes > 0) std::memcpy(copy.value->raw_data(), copy.from.raw_data(), bytes);
    CheckBools(*copy.value, copy.what);
  }
}

void FeedCopies::Release() {
  for (Copy& copy : copies_) copy.from = Tensor();
}

}  // namespace skiff
