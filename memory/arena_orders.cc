#include "memory/arena_orders.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "framework/base/element_count.h"
#include "memory/arena_space.h"

namespace skiff {
namespace {

// The most gaps and neighbours that all orders together may examine.
constexpr int64_t kMaxSteps = 15'000'000;
// The same if some buffers are fixed; the caller then tries several ways.
constexpr int64_t kMaxStepsIfFixed = kMaxSteps / 4;
// Offsets stay below this; a placement that would exceed it is given up.
constexpr int64_t kMaxOffset = int64_t{1} << 62;

// The placed buffers by their lives, in a centered interval tree over the instants (de Berg et al.,
// "Computational Geometry", 3rd edition, section 10.1). Its shape depends only on the range of
// instants, so it never needs rebalancing.
class PlacedByLife {
 public:
  PlacedByLife(int32_t begin, int32_t end) : begin_(begin), end_(end) {
    size_t nodes = 1;
    while (nodes < static_cast<size_t>(int64_t{end} - begin) + 1) nodes *= 2;
    placed_.resize(2 * nodes);
    counts_.assign(2 * nodes, 0);
  }

  // Stores the buffer at the topmost node whose middle instant is in its life. All buffers at a
  // node thus meet each other, and each is stored once, whatever the length of its life.
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

  // Appends offset and end of each buffer whose life meets first … last. Adds the number examined
  // to *steps.
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
    // Lives in the left subtree end before the middle, those in the right one begin after it.
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
  void FindSizes();
  bool IsDone() const { return best_.planned_bytes <= enough_bytes_ || steps_ >= max_steps_; }
  // Whether a walk must stop. The first one continues to its end.
  bool IsUnfinished() const { return steps_ >= max_steps_ && best_.planned_bytes < INT64_MAX; }
  void Keep(OrderedPlacement placement);
  void PlaceOnline(GapFit fit, bool is_reversed);
  void PlaceFromPeak(const Order& stack, GapFit fit);
  void PlaceGreedily(const Order& order, GapFit fit);
  void WalkForward(const Order& at_start, Order later, GapFit fit, OrderedPlacement* placement);
  std::vector<Order> StacksAtPeak() const;
  void AddOrderByLoad(std::vector<Order>* orders);
  void ReverseTime();
  void PlaceNext(size_t index, GapFit fit, FreeSpace* space, OrderedPlacement* placement);
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
  std::vector<ArenaLife> lives_;  // counted in the instants that CompressLives keeps
  const FixedBuffers fixed_;
  const int64_t max_steps_;
  int32_t instants_ = 0;
  std::vector<int64_t> sizes_;  // in the arena
  std::vector<int64_t> load_;   // by instant: the bytes that are live
  int32_t peak_ = 0;            // the instant with the most
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
  FindSizes();
}

// Keeps only the instants at which a buffer begins and numbers them 0, 1, …. That changes nothing:
// the live bytes have their maxima at such instants, and two lives that meet do so at one of them.
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

// Rounds the bytes up to the smallest alignment. The space between the end of a buffer and the next
// multiple is useless, but would make thousands of gaps to examine.
void Orders::FindSizes() {
  const int64_t unit = std::ranges::min(buffers_, {}, &ArenaBuffer::alignment).alignment;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const int64_t bytes = buffers_[i].bytes;
    sizes_.push_back(IsFixed(i) ? bytes : RoundUp(bytes, unit));
  }
}

void Orders::ReverseTime() {
  for (ArenaLife& life : lives_) {
    life = {instants_ - 1 - life.last, instants_ - 1 - life.first};
  }
  peak_ = instants_ - 1 - peak_;
}

void Orders::Keep(OrderedPlacement placement) {
  // The placement may have been cut short, with buffers that have no offset yet.
  if (IsUnfinished()) return;
  if (placement.planned_bytes < best_.planned_bytes) best_ = std::move(placement);
}

void Orders::Put(size_t index, int64_t offset, int64_t bytes, OrderedPlacement* placement) {
  placement->offsets[index] = offset;
  placement->planned_bytes = std::max(placement->planned_bytes, offset + bytes);
}

void Orders::PlaceNext(size_t index, GapFit fit, FreeSpace* space, OrderedPlacement* placement) {
  const ArenaBuffer& buffer = buffers_[index];
  int64_t offset = 0;
  if (IsFixed(index)) {
    offset = fixed_offsets_[index];
    space->TakeAt(offset, sizes_[index]);
  } else {
    offset = space->Take({sizes_[index], buffer.alignment, lives_[index]}, fit, &steps_);
  }
  Put(index, offset, buffer.bytes, placement);
}

// Places the buffers of `at_start`, then those of `later` in the order of their first instants. The
// latter must not begin before the former. Of the buffers that begin at one instant, the one that
// lives longest comes first: placed low, it leaves the space above it contiguous when the others
// die.
void Orders::WalkForward(const Order& at_start, Order later, GapFit fit,
                         OrderedPlacement* placement) {
  SortDescending(&later, [&](size_t i) {
    return std::tuple(-lives_[i].first, lives_[i].last, buffers_[i].bytes);
  });
  FreeSpace space(fixed_, max_steps_);
  std::set<std::pair<int32_t, size_t>> live;  // by last instant
  for (const size_t i : at_start) {
    PlaceNext(i, fit, &space, placement);
    live.emplace(lives_[i].last, i);
  }
  for (const size_t i : later) {
    while (!live.empty() && live.begin()->first < lives_[i].first) {
      const size_t dead = live.begin()->second;
      space.Return(placement->offsets[dead], sizes_[dead]);
      live.erase(live.begin());
    }
    PlaceNext(i, fit, &space, placement);
    live.emplace(lives_[i].last, i);
    // INT64_MAX marks the placement as failed; it is never better than the best, so the walk ends.
    if (placement->planned_bytes > kMaxOffset) placement->planned_bytes = INT64_MAX;
    // A placement only grows, so one that has reached the size of the best can't beat it.
    if (placement->planned_bytes >= best_.planned_bytes || IsUnfinished()) return;
  }
}

void Orders::PlaceOnline(GapFit fit, bool is_reversed) {
  if (IsDone()) return;
  if (is_reversed) ReverseTime();
  OrderedPlacement placement = Nothing();
  WalkForward({}, All(), fit, &placement);
  if (is_reversed) ReverseTime();
  Keep(std::move(placement));
}

// Returns the buffers that live at the peak in four orders, each from the bottom of the arena up:
// by length of life, latest death first, earliest birth first, and by size. Where lives are nested,
// the first one puts the longest life lowest, so that what dies is always on top of the stack.
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
  // Fixed buffers first: the others must avoid them.
  for (Order& stack : stacks) SortDescending(&stack, [&](size_t i) { return IsFixed(i); });
  return stacks;
}

void Orders::PlaceFromPeak(const Order& stack, GapFit fit) {
  if (IsDone()) return;
  OrderedPlacement placement = Nothing();
  Order before, after;
  for (size_t i = 0; i < lives_.size(); ++i) {
    if (lives_[i].first > peak_) after.push_back(i);
    if (lives_[i].last < peak_) before.push_back(i);
  }
  // Both walks start with the same stack at the same offsets, so the halves before and after the
  // peak agree. The second one runs in reversed time.
  WalkForward(stack, after, fit, &placement);
  // Too large already, or cut short: the second half can't make it better.
  if (placement.planned_bytes >= best_.planned_bytes) return;
  ReverseTime();
  WalkForward(stack, before, fit, &placement);
  ReverseTime();
  Keep(std::move(placement));
}

// Places buffers in any order, not that of time. So it can't keep one list of free space; it scans
// the placed buffers whose lives meet the new one's, by offset, for gaps between them.
void Orders::PlaceGreedily(const Order& order, GapFit fit) {
  if (IsDone()) return;
  OrderedPlacement placement = Nothing();
  PlacedByLife placed(0, instants_ - 1);
  const auto add = [&](size_t i, int64_t offset) {
    Put(i, offset, buffers_[i].bytes, &placement);
    placed.Add(lives_[i].first, lives_[i].last, offset, offset + sizes_[i]);
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
    int64_t free = 0;  // the highest end of all neighbours so far
    int64_t offset = -1;
    int64_t smallest = INT64_MAX;
    for (const auto& [begin, end] : neighbours) {
      const int64_t at = RoundUp(free, buffer.alignment);
      if (at + sizes_[i] <= begin && begin - free < smallest) {
        offset = at;
        smallest = begin - free;
        if (fit == GapFit::kLowest) break;
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

// By the load of the busiest instant of each life. Omitted if that takes too long to find.
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
  // Every order runs only if the best so far is above the bound and work units remain, so the cheap
  // ones, and those that suit training steps, come first. The first one always finishes: it
  // examines few gaps, or none once the units are used up.
  PlaceOnline(GapFit::kSmallest, false);
  PlaceOnline(GapFit::kSmallest, true);
  const std::vector<Order> stacks = StacksAtPeak();
  for (const Order& stack : stacks) PlaceFromPeak(stack, GapFit::kSmallest);
  const auto area = [&](size_t i) {
    return static_cast<double>(buffers_[i].bytes) * static_cast<double>(LengthOf(i));
  };
  std::vector<Order> orders(3, All());
  SortDescending(&orders[0],
                 [&](size_t i) { return std::pair(buffers_[i].bytes, -lives_[i].first); });
  SortDescending(&orders[1], area);
  SortDescending(&orders[2], [&](size_t i) { return std::pair(LengthOf(i), buffers_[i].bytes); });
  AddOrderByLoad(&orders);
  for (const Order& order : orders) PlaceGreedily(order, GapFit::kLowest);
  for (const Order& stack : stacks) PlaceFromPeak(stack, GapFit::kLowest);
  PlaceOnline(GapFit::kLowest, false);
  PlaceOnline(GapFit::kLowest, true);
  for (const Order& order : orders) PlaceGreedily(order, GapFit::kSmallest);
  return std::move(best_);
}

}  // namespace

OrderedPlacement PlaceInOrders(std::span<const ArenaBuffer> buffers, int64_t enough_bytes,
                               std::span<const int64_t> fixed_offsets) {
  if (buffers.empty()) return {.offsets = {}, .planned_bytes = 0};
  return Orders(buffers, enough_bytes, fixed_offsets).Run();
}

}  // namespace skiff
