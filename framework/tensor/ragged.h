// Ragged tensors and their LoD, made of lengths or of nested lists.
//
//   RaggedTensor<int64_t>({{3, 1}, {}, {7}})            // [3], lod {{0, 2, 2, 3}}
//   RaggedTensor<float>({{1, 2, 3, 4}, {5, 6}}, {2})    // [3, 2], lod {{0, 2, 3}}
#pragma once

#include <cstdint>
#include <vector>

#include "framework/tensor/api/tensor.h"

namespace skiff {

// The lengths of the sequences of each level, outermost first (recursive_sequence_lengths in
// PaddlePaddle). Lengths of the lowest level count rows, lengths of other levels count sequences of
// the next level.
using LevelLengths = std::vector<std::vector<int64_t>>;

// Returns the LoD of sequences of these lengths. Throws Error (kInvalidArgument), which names the
// level, for a negative length, for a level without sequences, and for a level whose lengths don't
// sum to the number of sequences of the next level.
LoD LoDOfLengths(const LevelLengths& lengths);
// Returns the lengths of a valid LoD.
LevelLengths LengthsOf(const LoD& lod);

// Returns a CPU tensor of `rows` with the LoD of these lengths. Throws Error (kInvalidArgument) as
// LoDOfLengths, and if the lowest lengths don't sum to the number of rows.
Tensor WithLengths(Tensor rows, const LevelLengths& lengths);

// Returns a CPU tensor with the elements of the sequences, one after the other, and a LoD of one
// level. `row_dims` are the dims of a row. Throws Error (kInvalidArgument) if there is no sequence,
// or if the elements of a sequence aren't whole rows; the message names the sequence.
template <typename T>
Tensor RaggedTensor(const std::vector<std::vector<T>>& sequences, const Shape& row_dims = {});
// The same of sequences of sequences, with two levels.
template <typename T>
Tensor NestedRaggedTensor(const std::vector<std::vector<std::vector<T>>>& sequences,
                          const Shape& row_dims = {});

namespace internal {

// The rows of sequences, one after the other.
template <typename T>
class JoinedSequences {
 public:
  explicit JoinedSequences(const Shape& row_dims) : row_dims_(row_dims) {}
  // Throws Error (kInvalidArgument) unless the elements are whole rows.
  void Append(const std::vector<T>& sequence);
  // Returns the length of each sequence.
  const std::vector<int64_t>& lengths() const { return lengths_; }
  Tensor Rows() const;

 private:
  Shape row_dims_;
  std::vector<T> elements_;
  std::vector<int64_t> lengths_;
};

// Returns how many rows of `row_elements` elements sequence `index` has, which has so many elements
// in all. Throws Error (kInvalidArgument) if they aren't whole rows.
int64_t RowsOfSequence(size_t index, size_t elements, int64_t row_elements);

template <typename T>
void JoinedSequences<T>::Append(const std::vector<T>& sequence) {
  lengths_.push_back(RowsOfSequence(lengths_.size(), sequence.size(), row_dims_.element_count()));
  elements_.insert(elements_.end(), sequence.begin(), sequence.end());
}

template <typename T>
Tensor JoinedSequences<T>::Rows() const {
  int64_t rows = 0;
  for (const int64_t length : lengths_) rows += length;
  Shape shape = {rows};
  for (const int64_t dim : row_dims_) shape.Append(dim);
  return Tensor::FromValues<T>(shape, elements_);
}

}  // namespace internal

template <typename T>
Tensor RaggedTensor(const std::vector<std::vector<T>>& sequences, const Shape& row_dims) {
  internal::JoinedSequences<T> joined(row_dims);
  for (const std::vector<T>& sequence : sequences) joined.Append(sequence);
  return WithLengths(joined.Rows(), {joined.lengths()});
}

template <typename T>
Tensor NestedRaggedTensor(const std::vector<std::vector<std::vector<T>>>& sequences,
                          const Shape& row_dims) {
  internal::JoinedSequences<T> joined(row_dims);
  std::vector<int64_t> outer_lengths;
  for (const std::vector<std::vector<T>>& outer : sequences) {
    outer_lengths.push_back(static_cast<int64_t>(outer.size()));
    for (const std::vector<T>& inner : outer) joined.Append(inner);
  }
  return WithLengths(joined.Rows(), {outer_lengths, joined.lengths()});
}

}  // namespace skiff
