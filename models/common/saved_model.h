// A model that a training saved, in the form in which predicting programs run it.
//
// Its folder is input like any other file: the program in it may be another program, and the
// results of a run may have any rank, dims, dtype, LoD and values. So a predictor gets no tensor,
// but outputs that check themselves.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/place.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/tensor/scope.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"

namespace skiff::models {

// The most that an element of an output of probabilities may be: the numbers of a softmax are
// rounded.
inline constexpr float kMostProbability = 1.001f;

// An output of a run of a saved model.
class ModelOutput {
 public:
  // `where` begins messages.
  ModelOutput(Tensor tensor, std::string where)
      : tensor_(std::move(tensor)), where_(std::move(where)) {}

  // Returns the elements, which live as long as the output. Throws an Error (kInvalidArgument)
  // unless the output is a dense tensor without LoD, of the dtype float32 (int64), with these dims
  // (-1: any extent from 1 on) and elements from `least` to `most`, so that none is NaN. `what` is
  // the output's name in messages.
  std::span<const float> Floats(const std::string& what, std::span<const int64_t> dims, float least,
                                float most) const;
  std::span<const int64_t> Integers(const std::string& what, std::span<const int64_t> dims,
                                    int64_t least, int64_t most) const;
  // Returns the output without its LoD, for the functions above, where the caller knows of which
  // sequences the rows are.
  ModelOutput WithoutLoD() const;
  // Returns the dims, for outputs that the functions above accept.
  const Shape& shape() const { return tensor_.shape(); }

 private:
  template <typename T>
  std::span<const T> Values(const std::string& what, std::span<const int64_t> dims, T least,
                            T most) const;

  Tensor tensor_;
  std::string where_;
};

class SavedModel {
 public:
  // Loads a model from the folder that a training saved it in (OUTPUT_DIR/model). Throws what
  // LoadInferenceModel throws.
  explicit SavedModel(const std::string& directory, Place place = Place::Default());

  const std::string& directory() const { return directory_; }
  const std::vector<std::string>& feed_names() const { return feed_names_; }
  const std::vector<std::string>& fetch_names() const { return fetch_names_; }
  Program& program() { return *program_; }
  const Scope& scope() const { return executor_.scope(); }

  // Throws an Error (kInvalidArgument) unless the model has exactly these feeds, in the given
  // order, and so many fetches. `expected` ends the message, such as "a text classifier".
  void CheckIs(const std::string& expected, const std::vector<std::string>& feeds,
               size_t fetches) const;
  // Returns the variable of the program's root block. Throws an Error (kInvalidArgument) if no
  // variable has the name, or if the rank is another.
  const Var& VarOfRank(const std::string& name, size_t rank) const;

  // Makes Compile compile another program with the same parameters. They get the precision that it
  // declares.
  void SetProgram(std::unique_ptr<Program> program, std::vector<std::string> fetches);
  // Compiles the program as it is now. Throws what Executor::Compile throws.
  void Compile();
  // Runs the program compiled last, and returns the fetches in order. Throws what
  // CompiledProgram::Run throws, and an Error (kFailedPrecondition) before Compile.
  std::vector<ModelOutput> Run(const FeedList& feeds);

 private:
  std::string directory_;
  Executor executor_;
  std::unique_ptr<Program> program_;
  std::vector<std::string> feed_names_;
  std::vector<std::string> fetch_names_;
  std::unique_ptr<CompiledProgram> compiled_;
};

}  // namespace skiff::models
