// The counts of a run that are known only when it starts: the rows of its feeds, and the sequences
// of each level of their LoDs. A plan for a capacity serves all runs whose counts round up to the
// capacity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/op/op_context.h"
#include "framework/tensor/tensor.h"

namespace skiff {

using FeedMetas = std::vector<std::pair<std::string, TensorMeta>>;

// Returns the LoD whose counts a feed has: its own LoD or, for a rank table, the LoD of the ranked
// variable. nullptr: none.
const LoDGroup* CountedLoD(const TensorMeta& meta);

// Returns the smallest capacity that holds `count`: a multiple of 8, at most a quarter more from 32
// on.
int64_t CapacityFor(int64_t count);

// Returns the smallest count that rounds up to this capacity.
int64_t LeastFor(int64_t capacity);

// Appends the number of sequences of each level, and last the number of rows.
void AppendCounts(const LoD& lod, std::vector<int64_t>* counts);
// Returns `lod` widened to these counts, none of which may be less than the LoD's own: new
// sequences come last, and additional rows go to the shortest sequences, so that the longest
// sequence grows only if all grow.
LoD WidenLoD(const LoD& lod, const std::vector<int64_t>& counts);
// Returns a LoD with these counts and sequences of about equal lengths.
LoD EvenLoD(const std::vector<int64_t>& counts);

// Returns EvenLoD, but with (kind + 1) steps moved from the last sequences of each level to the
// first, as far as each keeps one: a LoD for each kind unless the sequences are too short.
LoD UnevenLoD(const std::vector<int64_t>& counts, size_t kind);

// Returns whether two shapes are equal except for the dim at `axis`.
bool DifferInRowsAlone(const Shape& a, const Shape& b, int axis = 0);

// Sets the rows of a tensor that has room for more: its dim at `axis`. The axis is only other than
// 0 for a tensor without elements that carries a shape: no kernel reads the tensor, only a fetch or
// the rules of a later segment.
void SetRowsAt(int axis, int64_t rows, Tensor* tensor);

// The counts of feeds by class. Counts that were equal in the run for which a plan is made are a
// class: most equal counts are always equal, such as the sequences and the labels of a batch.
class CountClasses {
 public:
  CountClasses() = default;
  // Of feeds with the shapes and LoDs of a run. A dense feed counts by dim 0 if `varies` says so.
  CountClasses(const FeedMetas& feeds, const std::vector<bool>& varies);
  // With these classes() and counts().
  CountClasses(std::vector<std::vector<size_t>> classes, std::vector<int64_t> counts)
      : classes_(std::move(classes)), counts_(std::move(counts)) {}

  // By class.
  const std::vector<int64_t>& counts() const { return counts_; }
  // By feed, the class of each count of its LoD, or of dim 0; empty: its shape is fixed.
  const std::vector<std::vector<size_t>>& classes() const { return classes_; }
  // Returns the capacity for the count of each class.
  std::vector<int64_t> Capacity() const;
  // Return the feeds with other counts, given by class: with their LoDs widened (WidenLoD), and
  // with even LoDs (EvenLoD).
  FeedMetas Widened(const FeedMetas& feeds, const std::vector<int64_t>& counts) const;
  FeedMetas Even(const FeedMetas& feeds, const std::vector<int64_t>& counts) const;
  // The same with LoDs that differ from feed to feed (UnevenLoD).
  FeedMetas Uneven(const FeedMetas& feeds, const std::vector<int64_t>& counts) const;

  // Returns whether a feed has counts; otherwise its shape is fixed.
  bool Varies(size_t feed) const { return !classes_[feed].empty(); }
  // Adds the counts of a feed of another run (of `lod`, or else `rows`) to `counts`, which is by
  // class and holds -1 for a count not found yet. Returns false if two counts of a class differ.
  bool Gather(size_t feed, int64_t rows, const LoD& lod, std::vector<int64_t>* counts) const;

 private:
  template <typename NewLoD>
  FeedMetas WithCounts(const FeedMetas& feeds, const std::vector<int64_t>& counts,
                       const NewLoD& new_lod) const;

  std::vector<std::vector<size_t>> classes_;
  std::vector<int64_t> counts_;
};

}  // namespace skiff
