#include "memory/skyline_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "framework/base/element_count.h"

namespace skiff {
namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
// Generators", OOPSLA 2014).
uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

// The smallest and the largest length of the table of failed states, powers of two.
constexpr size_t kFirstFailures = size_t{1} << 8;
constexpr size_t kMostFailures = size_t{1} << 20;
// The most buffers at one boundary to consider.
constexpr size_t kMaxNeighbours = 64;
// Steps between two calls of `stop`: a few milliseconds.
constexpr int64_t kStepsPerStop = 1 << 20;

}  // namespace

SkylineSearch::SkylineSearch(std::span<const SearchBuffer> buffers, const Options& options)
    : options_(options),
      buffers_(buffers.begin(), buffers.end()),
      matched_({}, {}),
      failed_(kFirstFailures, 0),
      random_(Mix(options.seed)) {
  KeepDecidingInstants();
  SortBuffers();
  IndexBuffers();
  if (options_.match_boundaries) matched_ = MatchedBoundaries(buffers_, slack_);
}

// Two lives meet if and only if they meet at an instant that is the last one at which a buffer is
// born before another dies (the maximal cliques of an interval graph). Dropping all other instants
// makes every walk over instants shorter and loses nothing.
void SkylineSearch::KeepDecidingInstants() {
  std::vector<int32_t> born, dying;
  for (const SearchBuffer& b : buffers_) {
    born.push_back(b.first);
    dying.push_back(b.last);
  }
  std::ranges::sort(born);
  std::ranges::sort(dying);
  std::vector<int32_t> instants;
  for (size_t i = 0; i < born.size(); ++i) {
    const int32_t next_death = *std::ranges::lower_bound(dying, born[i]);
    if (i + 1 == born.size() || next_death < born[i + 1]) instants.push_back(born[i]);
  }
  for (SearchBuffer& b : buffers_) {
    b.first = static_cast<int32_t>(std::ranges::lower_bound(instants, b.first) - instants.begin());
    b.last =
        static_cast<int32_t>(std::ranges::upper_bound(instants, b.last) - instants.begin()) - 1;
  }
  height_.assign(instants.size(), 0);
}

// In order of birth, so that the buffers born in a range of instants are contiguous: first_born_
// gives their range.
void SkylineSearch::SortBuffers() {
  input_index_.resize(buffers_.size());
  std::iota(input_index_.begin(), input_index_.end(), size_t{0});
  std::ranges::stable_sort(
      input_index_, {}, [&](size_t i) { return std::pair(buffers_[i].first, -buffers_[i].last); });
  std::vector<SearchBuffer> sorted;
  for (const size_t index : input_index_) sorted.push_back(buffers_[index]);
  buffers_ = std::move(sorted);
}

void SkylineSearch::IndexBuffers() {
  const size_t instants = height_.size();
  is_placed_.assign(buffers_.size(), 0);
  offsets_.assign(buffers_.size(), 0);
  slack_.assign(instants, options_.capacity);
  live_.assign(instants, 0);
  crossing_.assign(instants, 0);
  first_born_.assign(instants + 1, 0);
  first_dying_.assign(instants + 1, 0);
  std::vector<int64_t> load(instants + 1, 0);
  for (const SearchBuffer& b : buffers_) {
    ++first_born_[static_cast<size_t>(b.first) + 1];
    ++first_dying_[static_cast<size_t>(b.last) + 1];
    // These are changes from the instant before. The loop below sums them up.
    ++live_[static_cast<size_t>(b.first)];
    load[static_cast<size_t>(b.first)] += b.size;
    load[static_cast<size_t>(b.last) + 1] -= b.size;
  }
  for (size_t i = 0; i < instants; ++i) {
    if (i > 0) live_[i] += crossing_[i - 1];
    crossing_[i] = live_[i] - first_dying_[i + 1];
    if (i > 0) load[i] += load[i - 1];
    slack_[i] -= load[i];
  }
  AddSteps(static_cast<int64_t>(buffers_.size() + instants));
  std::partial_sum(first_born_.begin(), first_born_.end(), first_born_.begin());
  std::partial_sum(first_dying_.begin(), first_dying_.end(), first_dying_.begin());
  born_.resize(buffers_.size());
  std::iota(born_.begin(), born_.end(), 0);
  dying_ = born_;
  std::ranges::stable_sort(dying_, {}, [&](int32_t buffer) { return At(buffer).last; });
}

std::span<const int32_t> SkylineSearch::BornAt(int32_t instant) const {
  const auto i = static_cast<size_t>(instant);
  return std::span(born_).subspan(static_cast<size_t>(first_born_[i]),
                                  static_cast<size_t>(first_born_[i + 1] - first_born_[i]));
}

std::span<const int32_t> SkylineSearch::DyingAt(int32_t instant) const {
  const auto i = static_cast<size_t>(instant);
  return std::span(dying_).subspan(static_cast<size_t>(first_dying_[i]),
                                   static_cast<size_t>(first_dying_[i + 1] - first_dying_[i]));
}

bool SkylineSearch::IsFull() const {
  for (size_t i = 0; i < slack_.size(); ++i) {
    if (live_[i] > 0 && slack_[i] == 0) return true;
  }
  return false;
}

std::vector<int64_t> SkylineSearch::Offsets() const {
  std::vector<int64_t> offsets(offsets_.size());
  for (size_t i = 0; i < offsets_.size(); ++i) offsets[input_index_[i]] = offsets_[i];
  return offsets;
}

// Depth-first search: each frame of the stack has applied one choice and then solves the parts that
// the choice has left, one after the other. If a part has no solution, the frame undoes its choice,
// with all that was solved since, and takes the next one. The stack is explicit since its depth is
// the number of placed buffers, which may be thousands.
SkylineSearch::Verdict SkylineSearch::Dive(int64_t max_nodes, int64_t max_steps) {
  // More bytes are live at some instant than the capacity.
  if (std::ranges::any_of(slack_, [](int64_t slack) { return slack < 0; })) {
    return Verdict::kImpossible;
  }
  end_steps_ = max_steps < std::numeric_limits<int64_t>::max() - steps_
                   ? steps_ + max_steps
                   : std::numeric_limits<int64_t>::max();
  Begin();
  const int64_t end = nodes_ + max_nodes;
  while (true) {
    Frame& frame = stack_.back();
    if (frame.is_applied && frame.next_part < parts_.size()) {
      if (nodes_ >= end || IsOutOfSteps() || IsToldToStop()) return Verdict::kUndecided;
      const Range part = parts_[frame.next_part++];
      if (!Push(part) && !TakeBack()) return Verdict::kImpossible;
    } else if (frame.is_applied) {  // all parts are solved
      if (stack_.size() == 1) return Verdict::kFound;
      Pop();
    } else if (frame.next_choice < frame.end_choice) {
      Apply(&frame);
    } else {
      RememberFailure(frame.key);
      Pop();
      if (!TakeBack()) return Verdict::kImpossible;
    }
  }
}

bool SkylineSearch::IsToldToStop() {
  if (!options_.stop || steps_ < next_stop_) return false;
  next_stop_ = steps_ + kStepsPerStop;
  return options_.stop();
}

void SkylineSearch::Begin() {
  Undo(0);
  stack_.clear();
  choices_.clear();
  parts_.clear();
  ++dives_;
  // The first frame is the whole arena. It has nothing to choose.
  stack_.push_back(
      {.range = {.begin = 0, .end = static_cast<int32_t>(height_.size())}, .is_applied = true});
  Split(stack_.back().range);
}

// Returns false if the state is a dead end.
bool SkylineSearch::Push(Range range) {
  ++nodes_;
  Frame frame{.range = range, .key = KeyOf(range), .changes = trail_.size()};
  if (HasFailed(frame.key)) return false;
  frame.first_choice = frame.next_choice = choices_.size();
  frame.first_part = frame.next_part = parts_.size();
  if (!FindChoices(range, &frame)) {
    choices_.resize(frame.first_choice);
    RememberFailure(frame.key);
    return false;
  }
  frame.end_choice = choices_.size();
  stack_.push_back(frame);
  return true;
}

void SkylineSearch::Pop() {
  choices_.resize(stack_.back().first_choice);
  parts_.resize(stack_.back().first_part);
  stack_.pop_back();
}

// Undoes the choice of the last frame. Returns false if that is the first frame, which has none.
bool SkylineSearch::TakeBack() {
  Frame& frame = stack_.back();
  if (stack_.size() == 1) return false;
  Undo(frame.changes);
  parts_.resize(frame.first_part);
  frame.next_part = frame.first_part;
  frame.is_applied = false;
  return true;
}

// Splits a range where no unplaced buffer crosses a boundary, and adds those parts in which an
// unplaced buffer lives. The parts don't affect each other, so solving them one after the other
// costs the sum of their searches, not the product.
void SkylineSearch::Split(Range range) {
  AddSteps(range.end - range.begin);
  int32_t begin = range.begin;
  for (int32_t i = range.begin; i < range.end; ++i) {
    if (i + 1 < range.end && crossing_[static_cast<size_t>(i)] > 0) continue;
    if (live_[static_cast<size_t>(i)] > 0) parts_.push_back({begin, i + 1});
    begin = i + 1;
  }
}

uint64_t SkylineSearch::KeyOf(Range range) {
  // A sum, so that the order in which the other buffers were placed doesn't matter. A state that
  // collides with a failed one is skipped wrongly; with 64 bits, of which the table uses up to 20
  // as the index, the chance is below 2^-43 per look-up.
  uint64_t key = 0;
  const int32_t begin = first_born_[static_cast<size_t>(range.begin)];
  const int32_t end = first_born_[static_cast<size_t>(range.end)];
  AddSteps(end - begin + range.end - range.begin);
  for (int32_t b = begin; b < end; ++b) {
    if (!IsPlaced(b)) key += Mix(static_cast<uint64_t>(b));
  }
  int64_t height = -1;
  for (int32_t i = range.begin; i < range.end; ++i) {
    if (HeightAt(i) == height) continue;
    height = HeightAt(i);
    key += Mix(Mix(static_cast<uint64_t>(height)) + static_cast<uint64_t>(i));
  }
  return key;
}

void SkylineSearch::RememberFailure(uint64_t key) {
  // Newer keys replace older ones with the same index. A lost key costs only time.
  if (++failures_ > failed_.size() / 2 && failed_.size() < kMostFailures) {
    std::vector<uint64_t> longer(4 * failed_.size(), 0);
    for (const uint64_t old : failed_) longer[old & (longer.size() - 1)] = old;
    failed_ = std::move(longer);
  }
  failed_[key & (failed_.size() - 1)] = key;
}

// Finds the choices of the valley with the fewest, as solvers of constraint problems do: fewer
// choices fail sooner. A valley with one choice is forced, so the scan stops there. Returns false
// if some valley has none.
bool SkylineSearch::FindChoices(Range range, Frame* frame) {
  AddSteps(range.end - range.begin);
  if (!BasinsCanBeFilled(range)) return false;
  size_t fewest = std::numeric_limits<size_t>::max();
  for (int32_t begin = range.begin; begin < range.end && fewest > 1;) {
    Valley valley{.begin = begin, .end = begin + 1, .floor = HeightAt(begin)};
    while (valley.end < range.end && HeightAt(valley.end) == valley.floor) ++valley.end;
    begin = valley.end;
    valley.left_wall = valley.begin > range.begin ? HeightAt(valley.begin - 1) : options_.capacity;
    valley.right_wall = valley.end < range.end ? HeightAt(valley.end) : options_.capacity;
    // No valley: a wall is lower than the floor, so its space belongs to a neighbour's valley.
    if (valley.depth() < 0) continue;
    const bool may_stay_empty = MayStayEmpty(valley);
    for (const bool is_rightmost : {false, true}) {
      side_choices_.clear();
      if (may_stay_empty) side_choices_.push_back({-1, is_rightmost, 0});
      FindSideChoices(valley, is_rightmost, fewest);
      if (side_choices_.size() >= fewest) continue;
      fewest = side_choices_.size();
      if (fewest == 0) return false;
      choices_.resize(frame->first_choice);
      choices_.insert(choices_.end(), side_choices_.begin(), side_choices_.end());
      frame->valley = valley;
    }
  }
  const auto found = std::span(choices_).subspan(frame->first_choice);
  for (Choice& choice : found) choice.preference = PreferenceOf(frame->valley, choice);
  std::ranges::stable_sort(found, std::greater(), &Choice::preference);
  return true;
}

// Returns whether enough buffers are left to fill the space below the lower of any two walls.
bool SkylineSearch::BasinsCanBeFilled(Range range) {
  const auto height = [&](int32_t i) {
    return i < range.begin || i >= range.end ? options_.capacity : HeightAt(i);
  };
  // A stack of walls, ever lower from left to right: a higher wall at the right closes the basins
  // between the lower ones and pops them, so that each basin is checked once.
  walls_.assign(1, range.begin - 1);
  for (int32_t i = range.begin; i <= range.end; ++i) {
    while (walls_.size() > 1 && height(walls_.back()) < height(i)) {
      walls_.pop_back();
      const int32_t left = walls_.back();
      if (!CanBeFilled(left + 1, i, std::min(height(left), height(i)))) return false;
    }
    if (walls_.size() > 1 && height(walls_.back()) == height(i)) walls_.pop_back();
    walls_.push_back(i);
  }
  return true;
}

bool SkylineSearch::CanBeFilled(int32_t begin, int32_t end, int64_t level) {
  if (IsOutOfSteps()) return true;  // unknown, but the dive ends here anyway
  fill_.assign(static_cast<size_t>(end - begin) + 1, 0);
  const int32_t begin_buffer = first_born_[static_cast<size_t>(begin)];
  const int32_t end_buffer = first_born_[static_cast<size_t>(end)];
  AddSteps(end_buffer - begin_buffer + end - begin);
  for (int32_t k = begin_buffer; k < end_buffer; ++k) {
    const SearchBuffer& b = At(k);
    // Only buffers that live entirely between the walls can fill the basin.
    if (IsPlaced(k) || b.last >= end) continue;
    fill_[static_cast<size_t>(b.first - begin)] += b.size;
    fill_[static_cast<size_t>(b.last + 1 - begin)] -= b.size;
  }
  int64_t fill = 0;
  for (int32_t i = begin; i < end; ++i) {
    fill += fill_[static_cast<size_t>(i - begin)];
    // The bytes between the skyline and `level` that no buffer can take must fit into the slack.
    if (HeightAt(i) + fill + SlackAt(i) < level) return false;
  }
  return true;
}

bool SkylineSearch::MayStayEmpty(const Valley& valley) {
  AddSteps(valley.end - valley.begin);
  for (int32_t i = valley.begin; i < valley.end; ++i) {
    if (SlackAt(i) < valley.depth()) return false;
  }
  // If a buffer fits into the hole, placing it there is at least as good as leaving the hole empty.
  const int32_t begin = first_born_[static_cast<size_t>(valley.begin)];
  const int32_t end = first_born_[static_cast<size_t>(valley.end)];
  AddSteps(end - begin);
  for (int32_t k = begin; k < end; ++k) {
    const SearchBuffer& b = At(k);
    if (IsPlaced(k) || b.last >= valley.end) continue;
    if (LyingAt(b, valley.floor) + b.size <= valley.floor + valley.depth()) return false;
  }
  return true;
}

// Stops soon after it has found `limit` choices: another valley has no more.
void SkylineSearch::FindSideChoices(const Valley& valley, bool is_rightmost, size_t limit) {
  // The least slack of the instants between the wall and the buffer, whose space stays empty if the
  // buffer is the outermost one on this side.
  int64_t slack = std::numeric_limits<int64_t>::max();
  const int32_t width = valley.end - valley.begin;
  for (int32_t k = 0; k < width && slack > 0 && side_choices_.size() < limit; ++k) {
    const int32_t i = is_rightmost ? valley.end - 1 - k : valley.begin + k;
    const std::span<const int32_t> buffers = is_rightmost ? DyingAt(i) : BornAt(i);
    AddSteps(static_cast<int64_t>(buffers.size()) + 1);
    for (const int32_t buffer : buffers) {
      if (!IsPlaced(buffer) && IsChoice(valley, buffer, is_rightmost, slack)) {
        side_choices_.push_back({buffer, is_rightmost, 0});
      }
    }
    slack = std::min(slack, SlackAt(i));
  }
}

bool SkylineSearch::IsChoice(const Valley& valley, int32_t buffer, bool is_rightmost,
                             int64_t slack) {
  const SearchBuffer& b = At(buffer);
  if (b.first < valley.begin || b.last >= valley.end) return false;
  const int64_t offset = LyingAt(b, valley.floor);
  const int64_t wall = is_rightmost ? valley.right_wall : valley.left_wall;
  const bool is_at_wall = is_rightmost ? b.last + 1 == valley.end : b.first == valley.begin;
  // Nothing can fill the space between the buffer and the wall, up to the lower of their tops.
  if (!is_at_wall && std::min(wall, offset + b.size) - valley.floor > slack) return false;
  if (offset > valley.floor || !matched_.empty()) AddSteps(b.last - b.first + 1);
  if (offset > valley.floor) {
    for (int32_t i = b.first; i <= b.last; ++i) {
      if (SlackAt(i) < offset - valley.floor) return false;
    }
  }
  return matched_.empty() || matched_.Allows(static_cast<size_t>(buffer), offset, height_);
}

// Returns how many buffers, this one included, explain the height of a wall: its height above the
// floor is the sum of buffers in the valley that end at it, less that of buffers beyond it that end
// at the same boundary. A match of few buffers is hardly a coincidence. Returns 0 for more than
// three, or if unknown.
int SkylineSearch::CutsThatMeet(const Valley& valley, int32_t buffer, bool at_right) {
  if (IsOutOfSteps()) return 0;
  const int64_t wall = at_right ? valley.right_wall : valley.left_wall;
  if (wall == options_.capacity) return 0;
  const int64_t rest = wall - valley.floor - At(buffer).size;
  if (rest == 0) return 1;
  int64_t others[2 * kMaxNeighbours];
  size_t count = 0;
  const auto add = [&](std::span<const int32_t> buffers, int64_t sign) {
    AddSteps(static_cast<int64_t>(buffers.size()));
    for (const int32_t other : buffers) {
      if (count == 2 * kMaxNeighbours) break;
      if (IsPlaced(other) || other == buffer) continue;
      others[count++] = sign * At(other).size;
    }
  };
  if (at_right) {
    add(DyingAt(valley.end - 1), 1);
    if (static_cast<size_t>(valley.end) < height_.size()) add(BornAt(valley.end), -1);
  } else {
    add(BornAt(valley.begin), 1);
    if (valley.begin > 0) add(DyingAt(valley.begin - 1), -1);
  }
  AddSteps(static_cast<int64_t>(count * (count + 1) / 2));
  int fewest = 0;
  for (size_t i = 0; i < count; ++i) {
    if (others[i] == rest) return 2;
    for (size_t j = 0; j < i; ++j) {
      if (others[i] + others[j] == rest) fewest = 3;
    }
  }
  return fewest;
}

// Higher is better. Choices that lose space come last; the more they lose, the later.
float SkylineSearch::PreferenceOf(const Valley& valley, const Choice& choice) {
  constexpr float kExplainsWall = 1e6f;  // twice or thrice: by fewer buffers
  constexpr float kFillsWidth = 1e3f;
  if (choice.buffer < 0) return -std::numeric_limits<float>::infinity();
  const SearchBuffer& b = At(choice.buffer);
  const bool is_at_left = b.first == valley.begin;
  const bool is_at_right = b.last + 1 == valley.end;
  const auto length = static_cast<double>(b.last - b.first + 1);
  const auto size = static_cast<double>(b.size);
  // Bytes times instants that are lost between the buffer and the wall, as a share of its own.
  if (!(choice.is_rightmost ? is_at_right : is_at_left)) {
    const int64_t wall = choice.is_rightmost ? valley.right_wall : valley.left_wall;
    const int32_t gap = choice.is_rightmost ? valley.end - 1 - b.last : b.first - valley.begin;
    const auto lost = static_cast<double>(std::min(b.size, wall - valley.floor));
    return static_cast<float>(-lost * gap / (length * size));
  }
  // The first two dives follow the preferences exactly. Noise makes each later one try something
  // else.
  random_ = Mix(random_);
  const float noise =
      dives_ <= 2 ? 1.0f : 0.2f + static_cast<float>(random_ >> 40) / static_cast<float>(1 << 24);
  // Every fourth dive ignores what walls suggest, since a match of sizes may be a coincidence.
  if (dives_ % 4 != 0) {
    int buffers = is_at_left ? CutsThatMeet(valley, choice.buffer, false) : 0;
    if (is_at_right) {
      const int at_right = CutsThatMeet(valley, choice.buffer, true);
      if (buffers == 0 || (at_right > 0 && at_right < buffers)) buffers = at_right;
    }
    if (buffers == 1) return kExplainsWall * kExplainsWall * kExplainsWall * noise;
    if (buffers == 2) return kExplainsWall * kExplainsWall * noise;
    if (buffers == 3) return kExplainsWall * noise;
    if (is_at_left && is_at_right) return kFillsWidth * noise;
  }
  const double of_length = length / static_cast<double>(height_.size());
  const double of_size = size / static_cast<double>(options_.capacity);
  switch (dives_ % 3) {
    case 0:
      return static_cast<float>(of_size) * noise;
    case 1:
      return static_cast<float>(of_length * of_size) * noise;
    default:
      return static_cast<float>(of_length) * noise;
  }
}

int64_t SkylineSearch::LyingAt(const SearchBuffer& buffer, int64_t floor) {
  return buffer.alignment == 1 ? floor : RoundUp(floor, buffer.alignment);
}

void SkylineSearch::Apply(Frame* frame) {
  const Choice choice = choices_[frame->next_choice++];
  const Valley& valley = frame->valley;
  frame->is_applied = true;
  if (choice.buffer < 0) {
    Raise(valley.begin, valley.end, valley.floor, valley.floor + valley.depth(), -1);
  } else {
    const SearchBuffer& b = At(choice.buffer);
    const int64_t offset = LyingAt(b, valley.floor);
    const int64_t top = offset + b.size;
    // The space lost to alignment below the buffer, the buffer, and the space lost beside it: since
    // the buffer is the outermost one on its side, nothing can come between it and the wall.
    Raise(b.first, b.last + 1, valley.floor, offset, -1);
    Raise(b.first, b.last + 1, offset, top, choice.buffer);
    if (choice.is_rightmost) {
      Raise(b.last + 1, valley.end, valley.floor, std::min(valley.right_wall, top), -1);
    } else {
      Raise(valley.begin, b.first, valley.floor, std::min(valley.left_wall, top), -1);
    }
  }
  Split(frame->range);
}

void SkylineSearch::Raise(int32_t begin, int32_t end, int64_t from, int64_t to, int32_t buffer) {
  if (begin >= end || from == to) return;
  AddSteps(2 * (end - begin));  // undoing it included
  trail_.push_back({begin, end, from, to, buffer});
  const auto first = static_cast<size_t>(begin);
  const auto stop = static_cast<size_t>(end);
  for (size_t i = first; i < stop; ++i) height_[i] = to;
  if (buffer < 0) {
    for (size_t i = first; i < stop; ++i) slack_[i] -= to - from;
    return;
  }
  is_placed_[static_cast<size_t>(buffer)] = 1;
  offsets_[static_cast<size_t>(buffer)] = from;
  for (size_t i = first; i < stop; ++i) --live_[i];
  for (size_t i = first; i + 1 < stop; ++i) --crossing_[i];
  if (!matched_.empty()) matched_.Place(static_cast<size_t>(buffer), from);
}

void SkylineSearch::Undo(size_t changes) {
  for (; trail_.size() > changes; trail_.pop_back()) {
    const Change& change = trail_.back();
    const auto first = static_cast<size_t>(change.begin);
    const auto stop = static_cast<size_t>(change.end);
    for (size_t i = first; i < stop; ++i) height_[i] = change.from;
    if (change.buffer < 0) {
      for (size_t i = first; i < stop; ++i) slack_[i] += change.to - change.from;
      continue;
    }
    is_placed_[static_cast<size_t>(change.buffer)] = 0;
    for (size_t i = first; i < stop; ++i) ++live_[i];
    for (size_t i = first; i + 1 < stop; ++i) ++crossing_[i];
    if (!matched_.empty()) matched_.Remove(static_cast<size_t>(change.buffer));
  }
}

}  // namespace skiff
