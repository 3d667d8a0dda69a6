#include "framework/training/saved_weights.h"

#include <cstring>

#include "framework/base/error.h"
#include "framework/io/checkpoint.h"
#include "framework/io/inference_model.h"
#include "framework/io/parameters.h"

namespace skiff::training {

Tensor Transposed(const Tensor& matrix, const std::string& where) {
  SKIFF_ENFORCE(matrix.shape().rank() == 2, kInvalidArgument, where, " is ", matrix.dtype(),
                matrix.shape(), ", expected a matrix to transpose");
  const int64_t rows = matrix.shape().dims()[0];
  const int64_t columns = matrix.shape().dims()[1];
  Tensor result({columns, rows}, matrix.dtype());
  const int64_t size = SizeOf(matrix.dtype());
  const auto* from = static_cast<const char*>(matrix.raw_data());
  auto* to = static_cast<char*>(result.raw_data());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      std::memcpy(to + (j * rows + i) * size, from + (i * columns + j) * size,
                  static_cast<size_t>(size));
    }
  }
  return result;
}

SavedWeights::SavedWeights(const std::string& path) : path_(path), executor_(Place::Cpu()) {
  if (IsSafetensorsShardsPath(path)) {
    shards_.emplace(path);
    names_ = shards_->names();
  } else if (HasCheckpoint(path)) {
    LoadVariablesOfLatestCheckpoint(path, &executor_.scope());
    names_ = executor_.scope().Names();
    is_checkpoint_ = true;
  } else {
    // Not the scope's names: the executor has variables of its own there.
    names_ = PersistableNames(*LoadInferenceModel(path, &executor_.scope()).program);
  }
}

bool SavedWeights::Contains(const std::string& name) const {
  return shards_ ? shards_->Contains(name) : executor_.scope().Find(name) != nullptr;
}

std::vector<int64_t> SavedWeights::dims(const std::string& name) const {
  if (shards_) return shards_->dims(name);
  const auto dims = executor_.scope().Get(name).shape().dims();
  return {dims.begin(), dims.end()};
}

const Tensor& SavedWeights::Load(const std::string& name, bool transpose) {
  Scope& scope = executor_.scope();
  if (shards_ && scope.Find(name) == nullptr) scope.Set(name, shards_->Read(name));
  if (!transpose) return scope.Get(name);
  scope.Set(name, Transposed(scope.Get(name), StrCat(path_, ": tensor \"", name, "\"")));
  return scope.Get(name);
}

}  // namespace skiff::training
