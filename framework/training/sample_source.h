// A numbered collection of samples of one shape, for a SampleReader.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/tensor/api/tensor.h"
#include "framework/training/reader.h"

namespace skiff::training {

// A source is const while it is read: several threads may read it.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual int64_t size() const = 0;
  // Returns the fields of a sample, with the shapes of one sample.
  virtual std::vector<FeedShape> fields() const = 0;
  // Writes a sample as the given epoch has it into row `row` of the tensors of a batch, one for
  // each field, of shape [batch size, field shape …]. `sample` is in [0, size()). May throw.
  virtual void Read(int64_t sample, int64_t epoch, int64_t row, std::span<Tensor> fields) const = 0;
};

// Throws an Error (kOutOfRange) unless 0 <= row < dim 0.
void CheckRow(const Tensor& tensor, int64_t row);

// Returns the elements of row `row`. Throws an Error unless the dtype is T's and 0 <= row < dim 0.
template <typename T>
std::span<T> RowOf(Tensor& tensor, int64_t row) {
  CheckRow(tensor, row);
  const std::span<T> all = tensor.values<T>();
  const size_t width = all.size() / static_cast<size_t>(tensor.shape()[0]);
  return all.subspan(static_cast<size_t>(row) * width, width);
}

}  // namespace skiff::training
