#include "tests/memory/arena_sets.h"

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "framework/base/error.h"

namespace skiff {
namespace {

struct Piece {
  int64_t begin, end;   // instants
  int64_t bottom, top;  // bytes
};

class Cutter {
 public:
  explicit Cutter(const RectangleCuts& cuts) : cuts_(cuts), random_(cuts.seed) {
    pieces_.push_back({0, cuts.instants, 0, cuts.bytes});
  }

  std::vector<Piece> Run() {
    while (pieces_.size() < static_cast<size_t>(cuts_.pieces)) {
      const auto index = static_cast<size_t>(Between(0, static_cast<int64_t>(pieces_.size())));
      const Piece piece = pieces_[index];
      const bool is_pinwheel = cuts_.with_pinwheels && random_() % 2 == 0 &&
                               piece.end - piece.begin > 2 && piece.top - piece.bottom > 2 &&
                               pieces_.size() + 4 <= static_cast<size_t>(cuts_.pieces);
      if (is_pinwheel) {
        CutPinwheel(index, piece);
      } else {
        CutInTwo(index, piece);
      }
    }
    std::shuffle(pieces_.begin(), pieces_.end(), random_);
    return pieces_;
  }

 private:
  // Uniform in begin … end - 1.
  int64_t Between(int64_t begin, int64_t end) {
    return begin + static_cast<int64_t>(random_() % static_cast<uint64_t>(end - begin));
  }

  void CutInTwo(size_t index, const Piece& piece) {
    if (random_() % 2 == 0) {
      if (piece.end - piece.begin < 2) return;
      const int64_t at = Between(piece.begin + 1, piece.end);
      pieces_[index].end = at;
      pieces_.push_back({at, piece.end, piece.bottom, piece.top});
    } else {
      if (piece.top - piece.bottom < 2) return;
      const int64_t at = Between(piece.bottom + 1, piece.top);
      pieces_[index].top = at;
      pieces_.push_back({piece.begin, piece.end, at, piece.top});
    }
  }

  void CutPinwheel(size_t index, const Piece& p) {
    const int64_t x1 = Between(p.begin + 1, p.end - 1);
    const int64_t x2 = Between(x1 + 1, p.end);
    const int64_t y1 = Between(p.bottom + 1, p.top - 1);
    const int64_t y2 = Between(y1 + 1, p.top);
    pieces_[index] = {p.begin, x2, p.bottom, y1};
    pieces_.push_back({x2, p.end, p.bottom, y2});
    pieces_.push_back({x1, p.end, y2, p.top});
    pieces_.push_back({p.begin, x1, y1, p.top});
    pieces_.push_back({x1, x2, y1, y2});
  }

  const RectangleCuts& cuts_;
  std::mt19937_64 random_;
  std::vector<Piece> pieces_;
};

std::string GroupFault(const std::vector<ArenaBuffer>& buffers, const std::vector<int64_t>& offsets,
                       int64_t planned_bytes) {
  std::map<int32_t, int64_t> bases;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ArenaBuffer& b = buffers[i];
    if (b.group < 0) continue;
    if (offsets[i] > planned_bytes) return StrCat("slice ", i, " is beyond the plan");
    const int64_t base = bases.try_emplace(b.group, offsets[i] - b.group_offset).first->second;
    if (offsets[i] - base != b.group_offset) {
      return StrCat("slice ", i, " is at ", offsets[i] - base, " in group ", b.group,
                    " instead of ", b.group_offset);
    }
    if (base < 0 || base % b.alignment != 0) return StrCat("group ", b.group, ": base ", base);
  }
  return "";
}

}  // namespace

std::vector<ArenaBuffer> CutRectangle(const RectangleCuts& cuts) {
  std::vector<ArenaBuffer> buffers;
  for (const Piece& piece : Cutter(cuts).Run()) {
    buffers.push_back({.bytes = piece.top - piece.bottom,
                       .alignment = 1,
                       .first_use = static_cast<int32_t>(piece.begin),
                       .last_use = static_cast<int32_t>(piece.end - 1)});
  }
  return buffers;
}

std::vector<ArenaBuffer> FullLoad(int32_t instants, int64_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<ArenaBuffer> dead, live;
  for (int32_t instant = 0; instant < instants; ++instant) {
    int64_t free = bytes;
    std::vector<ArenaBuffer> survivors;
    for (const ArenaBuffer& buffer : live) {
      const bool survives = random() % 3 > 0;
      (survives ? survivors : dead).push_back(buffer);
      if (survives) free -= buffer.bytes;
    }
    live = survivors;
    while (free > 0) {
      const int64_t taken = 1 + random() % free;
      live.push_back({.bytes = taken, .alignment = 1, .first_use = instant});
      free -= taken;
    }
    for (ArenaBuffer& buffer : live) buffer.last_use = instant;
  }
  dead.insert(dead.end(), live.begin(), live.end());
  return dead;
}

std::vector<ArenaBuffer> RandomSlices(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&random](int32_t limit) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(limit));
  };
  const int32_t groups = 1 + below(4);
  const int32_t most_bytes = below(4) == 0 ? 1 << 20 : 2000;
  std::vector<ArenaBuffer> buffers;
  for (int32_t n = 1 + below(70); n > 0; --n) {
    ArenaBuffer buffer{.bytes = below(8) == 0 ? 0 : below(most_bytes),
                       .alignment = int64_t{1} << below(9),
                       .first_use = below(40)};
    buffer.last_use = buffer.first_use + below(15);
    if (below(2) == 0) {
      buffer.group = 7 * below(groups);
      buffer.group_offset = below(20 * most_bytes) / buffer.alignment * buffer.alignment;
    }
    const bool is_free = std::ranges::none_of(buffers, [&](const ArenaBuffer& other) {
      return buffer.group >= 0 && other.group == buffer.group &&
             buffer.group_offset < other.group_offset + other.bytes &&
             other.group_offset < buffer.group_offset + buffer.bytes &&
             buffer.first_use <= other.last_use && other.first_use <= buffer.last_use;
    });
    if (!is_free) buffer.group = -1;
    buffers.push_back(buffer);
  }
  return buffers;
}

std::string PlacementFault(const std::vector<ArenaBuffer>& buffers,
                           const std::vector<int64_t>& offsets, int64_t planned_bytes) {
  if (offsets.size() != buffers.size()) return StrCat(offsets.size(), " offsets");
  const std::string group_fault = GroupFault(buffers, offsets, planned_bytes);
  if (!group_fault.empty()) return group_fault;
  std::vector<std::tuple<int64_t, bool, size_t>> events;  // instant, is a birth, buffer
  for (size_t i = 0; i < buffers.size(); ++i) {
    const ArenaBuffer& b = buffers[i];
    if (offsets[i] < 0 || offsets[i] % b.alignment != 0) {
      return StrCat("buffer ", i, ": offset ", offsets[i]);
    }
    if (b.bytes == 0) continue;
    if (offsets[i] > planned_bytes - b.bytes) return StrCat("buffer ", i, " ends beyond the plan");
    events.emplace_back(b.first_use, true, i);
    events.emplace_back(int64_t{b.last_use} + 1, false, i);
  }
  std::sort(events.begin(), events.end());  // at one instant, deaths come first
  std::map<int64_t, size_t> live;           // by offset
  for (const auto& [instant, is_birth, i] : events) {
    if (!is_birth) {
      live.erase(offsets[i]);
      continue;
    }
    const auto above = live.lower_bound(offsets[i]);
    if (above != live.end() && above->first < offsets[i] + buffers[i].bytes) {
      return StrCat("buffers ", i, " and ", above->second, " overlap at instant ", instant);
    }
    if (above != live.begin()) {
      const size_t below = std::prev(above)->second;
      if (offsets[below] + buffers[below].bytes > offsets[i]) {
        return StrCat("buffers ", i, " and ", below, " overlap at instant ", instant);
      }
    }
    live.emplace(offsets[i], i);
  }
  return "";
}

}  // namespace skiff
