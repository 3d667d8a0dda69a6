// The tensors of a saved model by name, whatever form it was saved in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/executor/executor.h"
#include "framework/io/safetensors_shards.h"
#include "framework/tensor/tensor.h"

namespace skiff::training {

// Returns the transpose of a matrix on the CPU. Throws an Error (kInvalidArgument), which begins
// with `where`, for another rank than 2.
Tensor Transposed(const Tensor& matrix, const std::string& where);

class SavedWeights {
 public:
  // Opens a file of safetensors or the index of several; loads an inference model or the newest
  // checkpoint of a directory. Throws what SafetensorsShards, LoadInferenceModel or
  // LoadVariablesOfLatestCheckpoint throws.
  explicit SavedWeights(const std::string& path);

  // Returns the names in ascending order.
  std::vector<std::string> names() const { return names_; }
  bool Contains(const std::string& name) const;
  std::vector<int64_t> dims(const std::string& name) const;
  // Returns whether the model also has what isn't weights, such as the states of optimizers.
  bool has_states() const { return is_checkpoint_; }
  // Returns a tensor, which the executor's scope has from now on; `transpose`: the transpose of the
  // matrix that was saved. A tensor is loaded in one of the two ways only. Throws an Error
  // (kInvalidArgument) for the transpose of another rank, and what SafetensorsShards::Read throws.
  const Tensor& Load(const std::string& name, bool transpose);

  Executor& executor() { return executor_; }

 private:
  std::string path_;
  Executor executor_;
  std::optional<SafetensorsShards> shards_;
  std::vector<std::string> names_;
  bool is_checkpoint_ = false;
};

}  // namespace skiff::training
