// Programs for inference with their weights, in Fluid's file layout: a directory with the
// serialised program (`__model__`) and the parameters, in a combined file or one file per variable.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/ir/api/program.h"
#include "framework/tensor/scope.h"

namespace skiff {

// The file of all parameters in the models that trainings save.
inline constexpr const char* kCombinedParamsFile = "__params__";

struct InferenceModelFiles {
  std::string model_filename = "__model__";
  // The combined file of all parameters; empty: one file per variable.
  std::string params_filename = "";
};

struct SaveInferenceModelOptions {
  InferenceModelFiles files = {};
  // Op types that get is_test = true even if the program omits the attribute.
  std::vector<std::string> ops_with_is_test = {};
};

// Returns a copy of a program for inference:
// - without feed, fetch, backward, optimizer and learning-rate ops, pruned to the ops that compute
//   the fetches from the feeds, with is_test set;
// - with a `scale` by 1 after each fetched variable, whose output is named
//   save_infer_model/scale_<i>, so that later rewrites don't fold the fetch away (except for bool
//   variables, which scale doesn't take, and for outputs of such an op);
// - with feed ops at the start, columns descending, and fetch ops at the end, columns ascending.
//
// Throws Error (kNotFound) for a feed or fetch that the root block doesn't have, (kAlreadyExists)
// for a name given twice, and (kInvalidArgument) for a feed or fetch other than a lod_tensor, for a
// feed without use for the fetches, for a fetch that no op computes, and if there is no fetch.
std::unique_ptr<Program> MakeInferenceProgram(const Program& program,
                                              const std::vector<std::string>& feeds,
                                              const std::vector<std::string>& fetches,
                                              const std::vector<std::string>& ops_with_is_test);

// Saves MakeInferenceProgram's program and the persistables that it uses. Of a parameter that the
// program declares float32, but the scope holds in half (float16 or bfloat16), the master weights
// are saved (MasterName): so a training in half saves the program that it was rewritten from, with
// all the bits of its weights. Writes the parameters first and the program last, each file
// atomically, so a new directory never holds a program without its parameters. Throws Error, before
// writing anything, as MakeInferenceProgram, (kInvalidArgument) if two files would have the same
// name: the program's and the parameters', or the program's and a variable's, and
// (kFailedPrecondition) if master weights lack. Later throws what SaveCombined and SaveSeparate
// throw.
void SaveInferenceModel(const std::string& directory, const std::vector<std::string>& feeds,
                        const std::vector<std::string>& fetches, const Program& program,
                        const Scope& scope, const SaveInferenceModelOptions& options = {});

struct InferenceModel {
  // As in the file, with feed and fetch ops. Fluid saves files without a mark of parameters. The
  // float persistables of such a file that ops read and no op writes become parameters, so that the
  // program can be trained.
  std::unique_ptr<Program> program = {};
  std::vector<std::string> feed_names = {};
  std::vector<std::string> fetch_names = {};
};

// Loads program and parameters. Throws Error (kNotFound) for a file that doesn't exist, (kDataLoss)
// for corrupt files and for feed or fetch ops whose columns aren't 0 … n-1, and what LoadCombined
// and LoadSeparate throw.
InferenceModel LoadInferenceModel(const std::string& directory, Scope* scope,
                                  const InferenceModelFiles& files);
// The same for a directory that anybody has saved a model in. If a name isn't given, this function
// looks for the file: the program is `__model__` or a `*.pdmodel`; the parameters are in
// `__params__` or a `*.pdiparams`, first the file with the program's name, or in one file per
// variable. Also throws an Error, with the names tried: kNotFound if no such file exists,
// kInvalidArgument if several do.
InferenceModel LoadInferenceModel(const std::string& directory, Scope* scope,
                                  const std::optional<std::string>& model_filename,
                                  const std::optional<std::string>& params_filename);
// The same, with both looked for.
InferenceModel LoadInferenceModel(const std::string& directory, Scope* scope);

// Return the fed (fetched) variables of a program by column: the outputs of its feed ops, the
// inputs of its fetch ops. Throw Error (kDataLoss) unless the columns are 0 … n-1 and each op names
// one variable.
std::vector<std::string> FeedNames(const Program& program);
std::vector<std::string> FetchNames(const Program& program);

}  // namespace skiff
