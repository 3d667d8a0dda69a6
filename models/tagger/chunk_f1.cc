#include "models/tagger/chunk_f1.h"

#include <limits>

#include "framework/base/error.h"

namespace skiff::models {

void ChunkF1::Add(std::span<const Tensor> values) {
  SKIFF_ENFORCE(values.size() == 3, kInvalidArgument, "ChunkF1 gets ", values.size(),
                " tensors, expected 3: inferred, labelled and correct chunks");
  AddCounts(values[0].Item<int64_t>(), values[1].Item<int64_t>(), values[2].Item<int64_t>());
}

void ChunkF1::AddCounts(int64_t inferred, int64_t labelled, int64_t correct) {
  inferred_ += inferred;
  labelled_ += labelled;
  correct_ += correct;
}

double ChunkF1::Value() const {
  if (inferred_ + labelled_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return 2 * static_cast<double>(correct_) / static_cast<double>(inferred_ + labelled_);
}

std::optional<std::vector<double>> ChunkF1::State() const {
  return std::vector<double>{static_cast<double>(inferred_), static_cast<double>(labelled_),
                             static_cast<double>(correct_)};
}

void ChunkF1::Merge(std::span<const double> state) {
  SKIFF_ENFORCE(state.size() == 3, kInvalidArgument, "a state of ", state.size(),
                " numbers, expected 3");
  AddCounts(static_cast<int64_t>(state[0]), static_cast<int64_t>(state[1]),
            static_cast<int64_t>(state[2]));
}

}  // namespace skiff::models
