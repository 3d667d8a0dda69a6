// One search over the skyline, which can be interrupted and resumed. SearchArena (arena_search.h,
// which explains the search) alternates between several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "memory/matched_boundaries.h"
#include "memory/search_buffer.h"

namespace skiff {

class SkylineSearch {
 public:
  enum class Verdict {
    kFound,
    kImpossible,  // with matched boundaries: no placement agrees with them
    kUndecided,
  };
  struct Options {
    int64_t capacity = 0;
    bool match_boundaries = false;
    uint64_t seed = 0;
    std::function<bool()> stop = {};
  };

  SkylineSearch(std::span<const SearchBuffer> buffers, const Options& options);

  // Returns whether the options ask for matched boundaries and there are any.
  bool has_matched_boundaries() const { return !matched_.empty(); }
  // Returns whether all capacity is in use at some instant.
  bool IsFull() const;
  // Restarts from the empty arena with new preferences. Visits at most `max_nodes` states, and no
  // more once steps() has grown by `max_steps`. Remembers states that failed in earlier dives.
  Verdict Dive(int64_t max_nodes, int64_t max_steps);
  // Returns the states visited by all dives.
  int64_t nodes() const { return nodes_; }
  // Returns the buffers and instants examined so far, including by the constructor. The time is
  // proportional to it.
  int64_t steps() const { return steps_; }
  // Returns one offset per buffer. Call it only after kFound.
  std::vector<int64_t> Offsets() const;

 private:
  struct Range {  // of instants
    int32_t begin;
    int32_t end;
  };
  struct Valley {
    int32_t begin = 0;
    int32_t end = 0;
    int64_t floor = 0;
    int64_t left_wall = 0;
    int64_t right_wall = 0;
    int64_t depth() const { return (left_wall < right_wall ? left_wall : right_wall) - floor; }
  };
  // What to do with a valley: place a buffer on its floor as the leftmost or rightmost buffer, or
  // leave the valley empty (buffer < 0).
  struct Choice {
    int32_t buffer;
    bool is_rightmost;
    float preference;
  };
  struct Change {  // of the skyline, from one height to another
    int32_t begin;
    int32_t end;
    int64_t from;
    int64_t to;
    int32_t buffer;  // -1: the space is given up
  };
  struct Frame {  // a state in which a choice was made
    Range range{};
    Valley valley{};
    uint64_t key = 0;
    size_t changes = 0;  // size of the trail when the frame began
    size_t first_choice = 0;
    size_t next_choice = 0;
    size_t end_choice = 0;
    size_t first_part = 0;  // of the parts that its choice has left
    size_t next_part = 0;
    bool is_applied = false;  // whether a choice is
  };

  void KeepDecidingInstants();
  void SortBuffers();
  void IndexBuffers();
  void Begin();
  bool IsToldToStop();
  bool Push(Range range);
  void Pop();
  bool TakeBack();
  void Apply(Frame* frame);
  void Undo(size_t changes);
  void Raise(int32_t begin, int32_t end, int64_t from, int64_t to, int32_t buffer);
  void Split(Range range);
  uint64_t KeyOf(Range range);
  bool HasFailed(uint64_t key) const { return failed_[key & (failed_.size() - 1)] == key; }
  void RememberFailure(uint64_t key);
  void AddSteps(int64_t count) { steps_ += count; }
  bool IsOutOfSteps() const { return steps_ >= end_steps_; }
  bool FindChoices(Range range, Frame* frame);
  bool BasinsCanBeFilled(Range range);
  bool CanBeFilled(int32_t begin, int32_t end, int64_t level);
  bool MayStayEmpty(const Valley& valley);
  void FindSideChoices(const Valley& valley, bool is_rightmost, size_t limit);
  bool IsChoice(const Valley& valley, int32_t buffer, bool is_rightmost, int64_t slack);
  float PreferenceOf(const Valley& valley, const Choice& choice);
  int CutsThatMeet(const Valley& valley, int32_t buffer, bool at_right);
  std::span<const int32_t> BornAt(int32_t instant) const;
  std::span<const int32_t> DyingAt(int32_t instant) const;
  const SearchBuffer& At(int32_t buffer) const { return buffers_[static_cast<size_t>(buffer)]; }
  bool IsPlaced(int32_t buffer) const { return is_placed_[static_cast<size_t>(buffer)] != 0; }
  int64_t HeightAt(int32_t instant) const { return height_[static_cast<size_t>(instant)]; }
  int64_t SlackAt(int32_t instant) const { return slack_[static_cast<size_t>(instant)]; }
  static int64_t LyingAt(const SearchBuffer& buffer, int64_t floor);

  const Options options_;
  std::vector<SearchBuffer> buffers_;  // by first instant
  std::vector<size_t> input_index_;    // of each buffer
  std::vector<char> is_placed_;
  std::vector<int64_t> offsets_;
  // By instant.
  std::vector<int64_t> height_;    // of the skyline
  std::vector<int64_t> slack_;     // what may still be lost
  std::vector<int32_t> live_;      // unplaced buffers that live then
  std::vector<int32_t> crossing_;  // the current buffers that live at the next instant, too
  std::vector<int32_t> first_born_, first_dying_;  // where the lists below begin
  std::vector<int32_t> born_, dying_;              // buffers
  MatchedBoundaries matched_;

  std::vector<Frame> stack_;
  std::vector<Choice> choices_;  // of all frames, one after the other
  std::vector<Range> parts_;     // the same
  std::vector<Change> trail_;
  std::vector<uint64_t> failed_;  // keys by their low bits; a newer key replaces an older key
  size_t failures_ = 0;
  int64_t nodes_ = 0;
  int64_t steps_ = 0;
  int64_t end_steps_ = 0;  // of the dive
  int64_t next_stop_ = 0;  // the steps after which `stop` is asked again
  uint64_t random_;
  int dives_ = 0;

  // Members to reuse their memory.
  std::vector<Choice> side_choices_;
  std::vector<int32_t> walls_;
  std::vector<int64_t> fill_;
};

}  // namespace skiff
