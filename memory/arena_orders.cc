#include "memory/arena_orders.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "framework/base/element_count.h"

namespace skiff {
namespace {

// Gaps and neighbours that the orders may look at in all.
constexpr int64_t kMaxSteps = 15'000'000;
// Where some are fixed, which is tried in several ways.
constexpr int64_t kMaxStepsIfFixed = kMaxSteps / 4;
// Fixed buffers that take as long to look at as a gap.
constexpr int64_t kFixedPerStep = 8;
// Offsets stay below; a placement that would go beyond is given up.
constexpr int64_t kMaxOffset = int64_t{1} << 62;

enum class Fit { kLowest, kSmallest };

struct Interval {  // of instants that are left after those where nothing begins
  int32_t first;
  int32_t last;
};

bool Meet(const Interval& a, const Interval& b) { return a.first <= b.last && b.first <= a.last; }

struct Request {
  int64_t bytes;
  int64_t alignment;
  Interval life;
};

// The least multiple of the alignment in [begin, end) below which the bytes fit; -1: they don't.
int64_t PlaceIn(int64_t begin, int64_t end, const Request& request) {
  const int64_t offset = RoundUp(begin, request.alignment);
  return offset + request.bytes <= end ? offset : -1;
}

// Buffers whose offsets are given. They are in the way of what lives with them at any time.
class FixedBuffers {
 public:
  // Follows the lives, which may change.
  FixedBuffers(std::span<const ArenaBuffer> buffers, std::span<const int64_t> offsets,
               const std::vector<Interval>& lives)
      : lives_(lives) {
    for (size_t i = 0; i < offsets.size(); ++i) {
      if (offsets[i] >= 0) fixed_.push_back({offsets[i], offsets[i] + buffers[i].bytes, i});
    }
    std::ranges::sort(fixed_, {}, [](const Fixed& f) { return std::pair(f.begin, f.index); });
    int64_t highest = 0;
    for (const Fixed& fixed : fixed_) {
      highest = std::max(highest, fixed.end);
      highest_ends_.push_back(highest);
    }
  }

  bool empty() const { return fixed_.empty(); }

  // As PlaceIn, beside those that are in the way: in the lowest or the smallest space between them
  // where that is possible. Adds what it looks at to *steps.
  int64_t PlaceBeside(int64_t begin, int64_t end, const Request& request, Fit fit,
                      int64_t* steps) const {
    const auto first_above = std::ranges::upper_bound(highest_ends_, begin);
    int64_t found = -1;
    int64_t found_bytes = 0;
    const auto look_below = [&](int64_t limit) {
      const int64_t offset = PlaceIn(begin, limit, request);
      if (offset < 0 || (found >= 0 && limit - begin >= found_bytes)) return;
      found = offset;
      found_bytes = limit - begin;
    };
    const auto first = static_cast<size_t>(first_above - highest_ends_.begin());
    size_t i = first;
    for (; i < fixed_.size() && fixed_[i].begin < end; ++i) {
      if (fit == Fit::kLowest && found >= 0) break;
      if (fixed_[i].end <= begin || !Meet(lives_[fixed_[i].index], request.life)) continue;
      look_below(fixed_[i].begin);
      begin = fixed_[i].end;
    }
    *steps += static_cast<int64_t>(i - first) / kFixedPerStep;
    if (fit == Fit::kSmallest || found < 0) look_below(end);
    return found;
  }

 private:
  struct Fixed {
    int64_t begin;
    int64_t end;
    size_t index;
  };

  const std::vector<Interval>& lives_;
  std::vector<Fixed> fixed_;           // by their beginnings
  std::vector<int64_t> highest_ends_;  // by fixed one: of it and all before
};

// The free space of an arena without an end. Fixed buffers are free until they are taken, but
// nothing is placed in their way.
class FreeSpace {
 public:
  explicit FreeSpace(const FixedBuffers& fixed) : fixed_(fixed) {}

  // The offset of what it takes. Adds the gaps and fixed buffers that it looks at to *steps.
  int64_t Take(const Request& request, Fit fit, int64_t* steps) {
    const auto [gap, offset] =
        fit == Fit::kLowest ? LowestGap(request, steps) : SmallestGap(request, steps);
    Occupy(gap, offset, request.bytes);
    return offset;
  }

  // Of a fixed buffer.
  void TakeAt(int64_t offset, int64_t bytes) {
    Occupy(offset >= end_ ? gaps_.end() : std::prev(gaps_.upper_bound(offset)), offset, bytes);
  }

  void Return(int64_t begin, int64_t bytes) {
    int64_t end = begin + bytes;
    auto next = gaps_.lower_bound(begin);
    if (next != gaps_.end() && next->first == end) {
      end = next->second;
      next = EraseGap(next);
    }
    if (next != gaps_.begin() && std::prev(next)->second == begin) {
      begin = std::prev(next)->first;
      EraseGap(std::prev(next));
    }
    if (end == end_) {
      end_ = begin;
    } else {
      AddGap(begin, end);
    }
  }

 private:
  using Gaps = std::map<int64_t, int64_t>;  // begin -> end
  struct Place {
    Gaps::iterator gap;  // the end: above all gaps
    int64_t offset;
  };

  int64_t PlaceBetween(int64_t begin, int64_t end, const Request& request, Fit fit,
                       int64_t* steps) const {
    return fixed_.empty() ? PlaceIn(begin, end, request)
                          : fixed_.PlaceBeside(begin, end, request, fit, steps);
  }

  Place AboveAll(const Request& request, int64_t* steps) {
    const int64_t end = std::numeric_limits<int64_t>::max();
    return {gaps_.end(), PlaceBetween(end_, end, request, Fit::kLowest, steps)};
  }

  Place LowestGap(const Request& request, int64_t* steps) {
    for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
      ++*steps;
      const int64_t offset = PlaceBetween(gap->first, gap->second, request, Fit::kLowest, steps);
      if (offset >= 0) return {gap, offset};
    }
    return AboveAll(request, steps);
  }

  Place SmallestGap(const Request& request, int64_t* steps) {
    for (auto size = by_size_.lower_bound({request.bytes, 0}); size != by_size_.end(); ++size) {
      // So that the first walk ends soon, too: without fixed buffers, a gap mostly fits.
      if (!fixed_.empty() && *steps >= kMaxStepsIfFixed) break;
      ++*steps;
      const auto gap = gaps_.find(size->second);
      const int64_t offset = PlaceBetween(gap->first, gap->second, request, Fit::kSmallest, steps);
      if (offset >= 0) return {gap, offset};
    }
    return AboveAll(request, steps);
  }

  void Occupy(Gaps::iterator gap, int64_t offset, int64_t bytes) {
    int64_t begin = end_;
    int64_t end = offset + bytes;
    if (gap == gaps_.end()) {
      end_ = end;
    } else {
      begin = gap->first;
      end = gap->second;
      EraseGap(gap);
    }
    AddGap(begin, offset);
    AddGap(offset + bytes, end);
  }

  Gaps::iterator EraseGap(Gaps::iterator gap) {
    by_size_.erase({gap->second - gap->first, gap->first});
    return gaps_.erase(gap);
  }

  void AddGap(int64_t begin, int64_t end) {
    if (begin == end) return;
    gaps_.emplace(begin, end);
    by_size_.emplace(end - begin, begin);
  }

  const FixedBuffers& fixed_;
  Gaps gaps_;
  std::set<std::pair<int64_t, int64_t>> by_size_;  // size, begin
  int64_t end_ = 0;                                // above is nothing
};

// Placed buffers by their lives: a centered interval tree over the instants (de Berg et al.,
// "Computational Geometry", 3rd edition, section 10.1), whose shape doesn't depend on them.
class PlacedByLife {
 public:
  PlacedByLife(int32_t begin, int32_t end) : begin_(begin), end_(end) {
    size_t nodes = 1;
    while (nodes < static_cast<size_t>(int64_t{end} - begin) + 1) nodes *= 2;
    placed_.resize(2 * nodes);
    counts_.assign(2 * nodes, 0);
  }

  void Add(int32_t first, int32_t last, int64_t offset, int64_t end) {
    int64_t low = begin_;
    int64_t high = end_;
    size_t node = 1;
    while (true) {
      ++counts_[node];
      const int64_t middle = low + (high - low) / 2;
      if (first <= middle && middle <= last) break;
      const bool is_left = last < middle;
      (is_left ? high : low) = is_left ? middle - 1 : middle + 1;
      node = 2 * node + (is_left ? 0 : 1);
    }
    placed_[node].push_back({first, last, offset, end});
  }

  // Appends offset and end of each that lives in first … last. Adds what it looks at to *steps.
  void Find(int32_t first, int32_t last, std::vector<std::pair<int64_t, int64_t>>* found,
            int64_t* steps) const {
    Find(1, begin_, end_, first, last, found, steps);
  }

 private:
  struct Placed {
    int32_t first;
    int32_t last;
    int64_t offset;
    int64_t end;
  };

  void Find(size_t node, int64_t low, int64_t high, int32_t first, int32_t last,
            std::vector<std::pair<int64_t, int64_t>>* found, int64_t* steps) const {
    if (low > high || counts_[node] == 0) return;
    *steps += static_cast<int64_t>(placed_[node].size()) + 1;
    for (const Placed& placed : placed_[node]) {
      if (placed.first <= last && first <= placed.last)
        found->push_back({placed.offset, placed.end});
    }
    const int64_t middle = low + (high - low) / 2;
    if (first < middle) Find(2 * node, low, middle - 1, first, last, found, steps);
    if (last > middle) Find(2 * node + 1, middle + 1, high, first, last, found, steps);
  }

  int64_t begin_;
  int64_t end_;
  std::vector<std::vector<Placed>> placed_;  // by node: those that live at its middle instant
  std::vector<int32_t> counts_;              // by node: with all below
};

class Orders {
 public:
  Orders(std::span<const ArenaBuffer> buffers, int64_t enough_bytes,
         std::span<const int64_t> fixed_offsets);
  OrderedPlacement Run();

 private:
  using Order = std::vector<size_t>;

  void CompressLives();
  void FindLoads();
  bool IsDone() const { return best_.planned_bytes <= enough_bytes_ || steps_ >= max_steps_; }
  void Keep(OrderedPlacement placement);
  void PlaceOnline(Fit fit, bool is_reversed);
  void PlaceFromPeak(const Order& stack, Fit fit);
  void PlaceGreedily(const Order& order, Fit fit);
  void WalkForward(const Order& at_start, Order later, Fit fit, OrderedPlacement* placement);
  std::vector<Order> StacksAtPeak() const;
  void AddOrderByLoad(std::vector<Order>* orders);
  void ReverseTime();
  void PlaceNext(size_t index, Fit fit, FreeSpace* space, OrderedPlacement* placement);
  static void Put(size_t index, int64_t offset, int64_t bytes, OrderedPlacement* placement);
  bool IsFixed(size_t i) const { return !fixed_offsets_.empty() && fixed_offsets_[i] >= 0; }
  OrderedPlacement Nothing() const {
    return {.offsets = std::vector<int64_t>(buffers_.size(), 0), .planned_bytes = 0};
  }
  int64_t LengthOf(size_t i) const { return int64_t{lives_[i].last} - lives_[i].first + 1; }
  Order All() const {
    Order order(buffers_.size());
    std::iota(order.begin(), order.end(), size_t{0});
    return order;
  }
  template <typename Key>  // of an index; the greatest first
  static void SortDescending(Order* order, const Key& key) {
    std::ranges::stable_sort(*order, std::greater(), key);
  }

  std::span<const ArenaBuffer> buffers_;
  const int64_t enough_bytes_;
  const std::span<const int64_t> fixed_offsets_;  // -1: not fixed; empty: none is
  std::vector<Interval> lives_;
  const FixedBuffers fixed_;
  const int64_t max_steps_;
  int32_t instants_ = 0;
  std::vector<int64_t> load_;  // by instant: the bytes that are live
  int32_t peak_ = 0;           // the instant with the most
  int64_t steps_ = 0;
  OrderedPlacement best_;
};

Orders::Orders(std::span<const ArenaBuffer> buffers, int64_t enough_bytes,
               std::span<const int64_t> fixed_offsets)
    : buffers_(buffers),
      enough_bytes_(enough_bytes),
      fixed_offsets_(fixed_offsets),
      fixed_(buffers, fixed_offsets, lives_),
      max_steps_(fixed_.empty() ? kMaxSteps : kMaxStepsIfFixed) {
  CompressLives();
  FindLoads();
}

// Numbers the instants at which a buffer begins; at no other one more is live.
void Orders::CompressLives() {
  std::vector<int32_t> begins;
  for (const ArenaBuffer& buffer : buffers_) begins.push_back(buffer.first_use);
  std::ranges::sort(begins);
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  instants_ = static_cast<int32_t>(begins.size());
  for (const ArenaBuffer& buffer : buffers_) {
    const auto first = std::ranges::lower_bound(begins, buffer.first_use) - begins.begin();
    const auto last = std::ranges::upper_bound(begins, buffer.last_use) - begins.begin() - 1;
    lives_.push_back({static_cast<int32_t>(first), static_cast<int32_t>(last)});
  }
}

void Orders::FindLoads() {
  load_.assign(static_cast<size_t>(instants_) + 1, 0);
  for (size_t i = 0; i < lives_.size(); ++i) {
    load_[static_cast<size_t>(lives_[i].first)] += buffers_[i].bytes;
    load_[static_cast<size_t>(lives_[i].last) + 1] -= buffers_[i].bytes;
  }
  std::partial_sum(load_.begin(), load_.end(), load_.begin());
  peak_ = static_cast<int32_t>(std::ranges::max_element(load_) - load_.begin());
}

void Orders::ReverseTime() {
  for (Interval& life : lives_) {
    life = {instants_ - 1 - life.last, instants_ - 1 - life.first};
  }
  peak_ = instants_ - 1 - peak_;
}

void Orders::Keep(OrderedPlacement placement) {
  if (steps_ >= max_steps_ && best_.planned_bytes < INT64_MAX) return;  // it may be unfinished
  if (placement.planned_bytes < best_.planned_bytes) best_ = std::move(placement);
}

void Orders::Put(size_t index, int64_t offset, int64_t bytes, OrderedPlacement* placement) {
  placement->offsets[index] = offset;
  placement->planned_bytes = std::max(placement->planned_bytes, offset + bytes);
}

void Orders::PlaceNext(size_t index, Fit fit, FreeSpace* space, OrderedPlacement* placement) {
  const ArenaBuffer& buffer = buffers_[index];
  int64_t offset = 0;
  if (IsFixed(index)) {
    offset = fixed_offsets_[index];
    space->TakeAt(offset, buffer.bytes);
  } else {
    offset = space->Take({buffer.bytes, buffer.alignment, lives_[index]}, fit, &steps_);
  }
  Put(index, offset, buffer.bytes, placement);
}

// Places `later` in the order of their first instants, when those of `at_start` are placed, which
// don't begin after them.
void Orders::WalkForward(const Order& at_start, Order later, Fit fit, OrderedPlacement* placement) {
  SortDescending(&later, [&](size_t i) {
    return std::tuple(-lives_[i].first, lives_[i].last, buffers_[i].bytes);
  });
  FreeSpace space(fixed_);
  std::set<std::pair<int32_t, size_t>> live;  // by last instant
  for (const size_t i : at_start) {
    PlaceNext(i, fit, &space, placement);
    live.emplace(lives_[i].last, i);
  }
  for (const size_t i : later) {
    while (!live.empty() && live.begin()->first < lives_[i].first) {
      const size_t dead = live.begin()->second;
      space.Return(placement->offsets[dead], buffers_[dead].bytes);
      live.erase(live.begin());
    }
    PlaceNext(i, fit, &space, placement);
    live.emplace(lives_[i].last, i);
    if (placement->planned_bytes > kMaxOffset) placement->planned_bytes = INT64_MAX;
    if (placement->planned_bytes >= best_.planned_bytes) return;
  }
}

void Orders::PlaceOnline(Fit fit, bool is_reversed) {
  if (IsDone()) return;
  if (is_reversed) ReverseTime();
  OrderedPlacement placement = Nothing();
  WalkForward({}, All(), fit, &placement);
  if (is_reversed) ReverseTime();
  Keep(std::move(placement));
}

std::vector<Orders::Order> Orders::StacksAtPeak() const {
  Order live;
  for (size_t i = 0; i < lives_.size(); ++i) {
    if (lives_[i].first <= peak_ && peak_ <= lives_[i].last) live.push_back(i);
  }
  std::vector<Order> stacks(4, live);
  SortDescending(&stacks[0], [&](size_t i) { return LengthOf(i); });
  SortDescending(&stacks[1], [&](size_t i) { return lives_[i].last; });
  SortDescending(&stacks[2], [&](size_t i) { return -lives_[i].first; });
  SortDescending(&stacks[3], [&](size_t i) { return buffers_[i].bytes; });
  for (Order& stack : stacks) SortDescending(&stack, [&](size_t i) { return IsFixed(i); });
  return stacks;
}

void Orders::PlaceFromPeak(const Order& stack, Fit fit) {
  if (IsDone()) return;
  OrderedPlacement placement = Nothing();
  Order before, after;
  for (size_t i = 0; i < lives_.size(); ++i) {
    if (lives_[i].first > peak_) after.push_back(i);
    if (lives_[i].last < peak_) before.push_back(i);
  }
  WalkForward(stack, after, fit, &placement);
  if (placement.planned_bytes >= best_.planned_bytes) return;
  ReverseTime();
  WalkForward(stack, before, fit, &placement);
  ReverseTime();
  Keep(std::move(placement));
}

void Orders::PlaceGreedily(const Order& order, Fit fit) {
  if (IsDone()) return;
  OrderedPlacement placement = Nothing();
  PlacedByLife placed(0, instants_ - 1);
  const auto add = [&](size_t i, int64_t offset) {
    Put(i, offset, buffers_[i].bytes, &placement);
    placed.Add(lives_[i].first, lives_[i].last, offset, offset + buffers_[i].bytes);
  };
  for (size_t i = 0; i < fixed_offsets_.size(); ++i) {
    if (IsFixed(i)) add(i, fixed_offsets_[i]);
  }
  std::vector<std::pair<int64_t, int64_t>> neighbours;  // offset, end
  for (const size_t i : order) {
    if (IsFixed(i)) continue;
    const ArenaBuffer& buffer = buffers_[i];
    neighbours.clear();
    placed.Find(lives_[i].first, lives_[i].last, &neighbours, &steps_);
    std::ranges::sort(neighbours);
    int64_t free = 0;  // the end of all neighbours so far
    int64_t offset = -1;
    int64_t smallest = INT64_MAX;
    for (const auto& [begin, end] : neighbours) {
      const int64_t at = RoundUp(free, buffer.alignment);
      if (at + buffer.bytes <= begin && begin - free < smallest) {
        offset = at;
        smallest = begin - free;
        if (fit == Fit::kLowest) break;
      }
      free = std::max(free, end);
    }
    if (offset < 0) offset = RoundUp(free, buffer.alignment);
    const int64_t end = offset + buffer.bytes;
    if (end >= best_.planned_bytes || end > kMaxOffset || steps_ >= max_steps_) return;
    add(i, offset);
  }
  Keep(std::move(placement));
}

// By the load of the busiest instant of a life. Left out where that takes too long to find.
void Orders::AddOrderByLoad(std::vector<Order>* orders) {
  for (size_t i = 0; i < lives_.size(); ++i) steps_ += LengthOf(i);
  if (IsDone()) return;
  std::vector<std::pair<int64_t, int64_t>> keys;
  for (size_t i = 0; i < lives_.size(); ++i) {
    const auto begin = load_.begin() + lives_[i].first;
    keys.emplace_back(*std::max_element(begin, begin + LengthOf(i)), buffers_[i].bytes);
  }
  orders->push_back(All());
  SortDescending(&orders->back(), [&](size_t i) { return keys[i]; });
}

OrderedPlacement Orders::Run() {
  // The first one always ends: it looks at few gaps.
  PlaceOnline(Fit::kSmallest, false);
  PlaceOnline(Fit::kSmallest, true);
  const std::vector<Order> stacks = StacksAtPeak();
  for (const Order& stack : stacks) PlaceFromPeak(stack, Fit::kSmallest);
  const auto area = [&](size_t i) {
    return static_cast<double>(buffers_[i].bytes) * static_cast<double>(LengthOf(i));
  };
  std::vector<Order> orders(3, All());
  SortDescending(&orders[0],
                 [&](size_t i) { return std::pair(buffers_[i].bytes, -lives_[i].first); });
  SortDescending(&orders[1], area);
  SortDescending(&orders[2], [&](size_t i) { return std::pair(LengthOf(i), buffers_[i].bytes); });
  AddOrderByLoad(&orders);
  for (const Order& order : orders) PlaceGreedily(order, Fit::kLowest);
  for (const Order& stack : stacks) PlaceFromPeak(stack, Fit::kLowest);
  PlaceOnline(Fit::kLowest, false);
  PlaceOnline(Fit::kLowest, true);
  for (const Order& order : orders) PlaceGreedily(order, Fit::kSmallest);
  return std::move(best_);
}

}  // namespace

OrderedPlacement PlaceInOrders(std::span<const ArenaBuffer> buffers, int64_t enough_bytes,
                               std::span<const int64_t> fixed_offsets) {
  if (buffers.empty()) return {.offsets = {}, .planned_bytes = 0};
  return Orders(buffers, enough_bytes, fixed_offsets).Run();
}

}  // namespace skiff
