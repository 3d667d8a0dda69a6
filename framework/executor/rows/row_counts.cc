#include "framework/executor/rows/row_counts.h"

#include <algorithm>
#include <bit>

namespace skiff {
namespace {

constexpr int64_t kStep = 8;

// Adds `rest` to the lengths, one by one, each to the currently shortest length.
void Lengthen(int64_t rest, std::vector<int64_t>* lengths) {
  if (lengths->empty()) return;
  // The shortest `count` sequences come to one level; of what remains, the first ones get one more.
  std::vector<int64_t> sorted = *lengths;
  std::ranges::sort(sorted);
  size_t count = 1;
  for (; count < sorted.size(); ++count) {
    const int64_t step = sorted[count] - sorted[count - 1];
    if (step > rest / static_cast<int64_t>(count)) break;
    rest -= step * static_cast<int64_t>(count);
  }
  const int64_t level = sorted[count - 1] + rest / static_cast<int64_t>(count);
  int64_t more = rest % static_cast<int64_t>(count);
  for (int64_t& length : *lengths) {
    if (length > level) continue;
    length = level + (more-- > 0 ? 1 : 0);
  }
}

}  // namespace

int64_t CapacityFor(int64_t count) {
  // Four capacities for each power of two.
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count) | 1));
  const int64_t step = std::max(kStep, power / 4);
  return std::max<int64_t>(count + step - 1, step) / step * step;
}

const LoDGroup* CountedLoD(const TensorMeta& meta) {
  return meta.lod != nullptr ? meta.lod.get() : meta.shape_lod.get();
}

int64_t LeastFor(int64_t capacity) {
  int64_t least = capacity;
  while (least > 1 && CapacityFor(least - 1) == capacity) --least;
  return least;
}

void AppendCounts(const LoD& lod, std::vector<int64_t>* counts) {
  for (const auto& offsets : lod) counts->push_back(static_cast<int64_t>(offsets.size()) - 1);
  counts->push_back(static_cast<int64_t>(lod.back().back()));
}

LoD WidenLoD(const LoD& lod, const std::vector<int64_t>& counts) {
  LoD wide = lod;
  for (size_t level = 0; level < wide.size(); ++level) {
    std::vector<uint64_t>& offsets = wide[level];
    std::vector<int64_t> lengths(static_cast<size_t>(counts[level]));
    for (size_t i = 1; i < offsets.size(); ++i) {
      lengths[i - 1] = static_cast<int64_t>(offsets[i] - offsets[i - 1]);
    }
    Lengthen(counts[level + 1] - static_cast<int64_t>(offsets.back()), &lengths);
    offsets = OffsetsOf(lengths);
  }
  return wide;
}

LoD EvenLoD(const std::vector<int64_t>& counts) {
  LoD lod;
  for (size_t level = 0; level + 1 < counts.size(); ++level) {
    const int64_t sequences = counts[level];
    const int64_t end = counts[level + 1];
    std::vector<uint64_t> offsets;
    // In steps: ops that divide a sequence among rows then find what they can divide.
    for (int64_t i = 0; i < sequences; ++i) {
      // count * i / sequences, where that product may overflow: rows without elements are free.
      const auto share = [&](int64_t count) {
        return count / sequences * i + count % sequences * i / sequences;
      };
      const int64_t even = end >= kStep * sequences ? share(end / kStep) * kStep : share(end);
      offsets.push_back(static_cast<uint64_t>(even));
    }
    offsets.push_back(static_cast<uint64_t>(end));
    lod.push_back(std::move(offsets));
  }
  return lod;
}

LoD UnevenLoD(const std::vector<int64_t>& counts, size_t kind) {
  LoD lod = EvenLoD(counts);
  for (auto& offsets : lod) {
    const auto sequences = static_cast<int64_t>(offsets.size()) - 1;
    // In whole steps if the lengths are.
    const uint64_t step =
        static_cast<int64_t>(offsets.back()) >= kStep * sequences ? uint64_t{kStep} : 1;
    uint64_t wanted = step * (kind + 1);
    // From the last sequence on, each of which keeps one step.
    for (size_t i = offsets.size() - 1; i > 1 && wanted > 0; --i) {
      const uint64_t length = offsets[i] - offsets[i - 1];
      const uint64_t moved = std::min(wanted, length > step ? length - step : 0);
      if (moved == 0) continue;
      for (size_t k = 1; k < i; ++k) offsets[k] += moved;
      wanted -= moved;
    }
  }
  return lod;
}

bool DifferInRowsAlone(const Shape& a, const Shape& b, int axis) {
  if (a.rank() != b.rank() || a.rank() <= axis) return a == b;
  Shape same_rows = a;
  same_rows[axis] = b[axis];
  return same_rows == b;
}

void SetRowsAt(int axis, int64_t rows, Tensor* tensor) {
  if (axis == 0) return tensor->SetRows(rows);
  Shape shape = tensor->shape();
  shape[axis] = rows;
  *tensor =
      Tensor(shape, tensor->dtype(), tensor->buffer(), tensor->offset_bytes(), tensor->layout());
}

CountClasses::CountClasses(const FeedMetas& feeds, const std::vector<bool>& varies) {
  for (size_t i = 0; i < feeds.size(); ++i) {
    const TensorMeta& meta = feeds[i].second;
    std::vector<int64_t> counts;
    if (const LoDGroup* lod = CountedLoD(meta)) {
      AppendCounts(lod->offsets, &counts);
    } else if (varies[i]) {
      counts = {meta.shape[0]};
    }
    std::vector<size_t>& classes = classes_.emplace_back();
    for (const int64_t count : counts) {
      const auto found = std::ranges::find(counts_, count);
      classes.push_back(static_cast<size_t>(found - counts_.begin()));
      if (found == counts_.end()) counts_.push_back(count);
    }
  }
}

std::vector<int64_t> CountClasses::Capacity() const {
  std::vector<int64_t> capacity;
  for (const int64_t count : counts_) capacity.push_back(CapacityFor(count));
  return capacity;
}

bool CountClasses::Gather(size_t feed, int64_t rows, const LoD& lod,
                          std::vector<int64_t>* counts) const {
  const std::vector<size_t>& classes = classes_[feed];
  for (size_t i = 0; i < classes.size(); ++i) {
    const int64_t last = lod.empty() ? rows : static_cast<int64_t>(lod.back().back());
    const int64_t found = i < lod.size() ? static_cast<int64_t>(lod[i].size()) - 1 : last;
    int64_t& count = (*counts)[classes[i]];
    if (count >= 0 && count != found) return false;
    count = found;
  }
  return true;
}

template <typename NewLoD>
FeedMetas CountClasses::WithCounts(const FeedMetas& feeds, const std::vector<int64_t>& counts,
                                   const NewLoD& new_lod) const {
  FeedMetas changed = feeds;
  for (size_t i = 0; i < changed.size(); ++i) {
    TensorMeta& meta = changed[i].second;
    if (classes_[i].empty()) continue;
    std::vector<int64_t> of_feed;
    for (const size_t index : classes_[i]) of_feed.push_back(counts[index]);
    const LoDGroup* lod = CountedLoD(meta);
    // A rank table has a row for each sequence.
    meta.shape[0] =
        lod == nullptr || meta.lod != nullptr ? of_feed.back() : of_feed[of_feed.size() - 2];
    if (lod == nullptr) continue;
    auto& changed_lod = meta.lod != nullptr ? meta.lod : meta.shape_lod;
    changed_lod =
        std::make_shared<const LoDGroup>(LoDGroup{.offsets = new_lod(i, lod->offsets, of_feed)});
  }
  return changed;
}

FeedMetas CountClasses::Widened(const FeedMetas& feeds, const std::vector<int64_t>& counts) const {
  return WithCounts(feeds, counts, [](size_t, const LoD& lod, const std::vector<int64_t>& of_feed) {
    return WidenLoD(lod, of_feed);
  });
}

FeedMetas CountClasses::Even(const FeedMetas& feeds, const std::vector<int64_t>& counts) const {
  return WithCounts(feeds, counts, [](size_t, const LoD&, const std::vector<int64_t>& of_feed) {
    return EvenLoD(of_feed);
  });
}

FeedMetas CountClasses::Uneven(const FeedMetas& feeds, const std::vector<int64_t>& counts) const {
  return WithCounts(feeds, counts,
                    [](size_t feed, const LoD&, const std::vector<int64_t>& of_feed) {
                      return UnevenLoD(of_feed, feed);
                    });
}

}  // namespace skiff
