// Models of other frameworks as models of Skiff: what all kinds of networks have in common.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/io/api/name_rules.h"
#include "framework/ir/program.h"
#include "framework/training/initial_weights.h"

namespace skiff::models {

struct Conversion {
  std::string source;          // a folder, or a file of weights in it
  std::string output;          // the folder to write, which must not exist
  bool allow_partial = false;  // parameters may lack, and tensors may be left over
  // Makes other names of the source's, before the rules that its framework's names have.
  std::vector<NameRule> rename = {};
};

struct PretrainedFiles {
  std::string folder;
  std::string weights;  // what SavedWeights opens
};

// Returns the files of a model in safetensors: those of a folder (model.safetensors, the index
// model.safetensors.index.json, or the only .safetensors), or the given file and its folder. Throws
// an Error (kNotFound) that says what was looked for, (kInvalidArgument) if several files could be
// meant.
PretrainedFiles FindSafetensors(const std::string& source);
// Returns the folder of an inference model of Paddle, which may be given by one of its files.
PretrainedFiles FindPaddleModel(const std::string& source);

// The dims of tensors by name. Those to be transposed have their dims in reverse order.
using NamedShapes = std::map<std::string, std::vector<int64_t>>;
// Returns a model's tensors under the names of the rules, without dropped ones. Throws what
// SavedWeights and ApplyRules throw.
NamedShapes RuledShapes(const std::string& weights, const std::vector<NameRule>& rules);

// Returns the name of each tensor and its name by the rules, without dropped ones. Throws the same.
std::vector<std::pair<std::string, std::string>> RuledPairs(const std::string& weights,
                                                            const std::vector<NameRule>& rules);

// A network without weights.
struct EmptyModel {
  Program main;
  Program startup;
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::map<std::string, std::string> files = {};  // more files of the folder: contents by name
};

// Gives the network the weights and saves it as an inference model with its other files. The folder
// appears when it is complete. Returns a report for people: counts of taken, missing, unused and
// dropped tensors, and the names and shapes of missing and unused ones. Throws an Error
// (kAlreadyExists) if the output exists, and what TakeWeights and SaveInferenceModel throw.
std::string WriteConverted(const std::string& weights, const std::vector<NameRule>& rules,
                           const Conversion& conversion, const EmptyModel& model);

// Returns all of `first`, then all of `then`.
std::vector<NameRule> InTurn(std::vector<NameRule> first, const std::vector<NameRule>& then);

}  // namespace skiff::models
