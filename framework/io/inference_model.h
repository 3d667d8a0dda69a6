// Programs for inference with their weights, in Fluid's layout: a directory with the serialised
// program (`__model__`) and the parameters, combined in one file or one file a variable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/tensor/scope.h"

namespace skiff {

struct InferenceModelFiles {
  std::string model_filename = "__model__";
  // The combined file of all parameters; empty: one file a variable.
  std::string params_filename = "";
};

struct SaveInferenceModelOptions {
  InferenceModelFiles files;
  // Op types that get is_test = true though the program leaves the attribute out.
  std::vector<std::string> ops_with_is_test;
};

// The inference form of a program: a copy
// - without feed, fetch, backward, optimizer and learning-rate ops, pruned to what the fetches need
//   from the feeds, with is_test set;
// - each fetched variable passed through an op `scale` by 1 whose output bears the name
//   save_infer_model/scale_<i>, so that later rewrites don't fold the fetch away (bool variables,
//   which scale doesn't take, and outputs of such an op stay as they are);
// - with feed ops in front, columns descending, and fetch ops at the end, columns ascending.
// Error: kNotFound for a feed or fetch that the root block doesn't have, kAlreadyExists for one
// named twice, kInvalidArgument for one that is no lod_tensor, for a feed that the fetches don't
// need, without any fetch, and for a fetch that nothing computes.
std::unique_ptr<Program> MakeInferenceProgram(const Program& program,
                                              const std::vector<std::string>& feeds,
                                              const std::vector<std::string>& fetches,
                                              const std::vector<std::string>& ops_with_is_test);

// Saves the inference form and the persistables that it uses. The parameters are written first, the
// program last, each file atomically: a directory new to it never holds a program without its
// parameters. Errors as for MakeInferenceProgram, SaveCombined and SaveSeparate.
void SaveInferenceModel(const std::string& directory, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& fetches, const Program& program,
                        const Scope& scope, const SaveInferenceModelOptions& options = {});

struct InferenceModel {
  std::unique_ptr<Program> program;  // as the file has it, feed and fetch ops included
  std::vector<std::string> feed_names;
  std::vector<std::string> fetch_names;
};

// Loads program and parameters. Error: kNotFound for a file that isn't there, kDataLoss for corrupt
// files and for feed or fetch ops whose columns aren't 0 … n-1, else as for LoadCombined and
// LoadSeparate.
InferenceModel LoadInferenceModel(const std::string& directory, Scope* scope,
                                  const InferenceModelFiles& files = {});

// The fed (fetched) variables of a program by column: the outputs of its feed ops, the inputs of
// its fetch ops. Error (kDataLoss) unless the columns are 0 … n-1 and each op names one variable.
std::vector<std::string> FeedNames(const Program& program);
std::vector<std::string> FetchNames(const Program& program);

}  // namespace skiff
