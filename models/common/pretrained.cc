#include "models/common/pretrained.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/inference_model.h"
#include "framework/io/name_rules.h"
#include "framework/io/safetensors_shards.h"
#include "framework/io/temp_folder.h"
#include "framework/training/saved_weights.h"

namespace skiff::models {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::vector<std::string> SafetensorsIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (IsSafetensorsPath(name)) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Returns the name of the weights in a folder.
std::string WeightsIn(const std::string& folder) {
  for (const char* name : {kWeights, kIndex}) {
    if (PathExists(JoinPath(folder, name))) return name;
  }
  const std::vector<std::string> names = SafetensorsIn(folder);
  SKIFF_ENFORCE(!names.empty(), kNotFound, folder, ": no weights: expected ", kWeights, ", ",
                kIndex, " or another .safetensors file");
  SKIFF_ENFORCE(names.size() == 1, kInvalidArgument, folder,
                ": which file has the weights: ", Join(names, ", "),
                "? Give the file instead of the folder");
  return names[0];
}

// "a [2, 3]" a line.
std::string Lines(const NamedShapes& shapes) {
  std::string lines;
  for (const auto& [name, dims] : shapes)
    lines += StrCat("  ", name, " [", Join(dims, ", "), "]\n");
  return lines;
}

std::string Report(const training::InitialWeights& weights, const Program& program) {
  NamedShapes missing;
  for (const std::string& name : weights.missing) {
    missing.emplace(name, program.root()->FindLocalVar(name)->dims);
  }
  return StrCat("taken: ", weights.taken.size(), "\nmissing: ", missing.size(), "\n",
                Lines(missing), "unused: ", weights.unused.size(), "\n", Lines(weights.unused),
                "dropped: ", weights.dropped.size(), "\n");
}

void WriteFolder(const std::string& folder, const EmptyModel& model, const Scope& scope) {
  SaveInferenceModel(folder, model.feeds, model.fetches, model.main, scope,
                     {.files = {.params_filename = kCombinedParamsFile}});
  for (const auto& [name, contents] : model.files) {
    AtomicWriteFile(JoinPath(folder, name), contents);
  }
  SyncDirectory(folder);
}

}  // namespace

PretrainedFiles FindSafetensors(const std::string& source) {
  if (IsFolder(source)) return {source, JoinPath(source, WeightsIn(source))};
  SKIFF_ENFORCE(PathExists(source), kNotFound, source, ": there is no such file or folder");
  SKIFF_ENFORCE(IsSafetensorsShardsPath(source), kInvalidArgument, source,
                ": expected a folder, a .safetensors file or its .safetensors.index.json");
  return {ParentDirectory(source), source};
}

PretrainedFiles FindPaddleModel(const std::string& source) {
  SKIFF_ENFORCE(PathExists(source), kNotFound, source, ": there is no such file or folder");
  const std::string folder = IsFolder(source) ? source : ParentDirectory(source);
  return {folder, folder};
}

NamedShapes RuledShapes(const std::string& weights, const std::vector<NameRule>& rules) {
  const training::SavedWeights saved(weights);
  const std::vector<std::string> names = saved.names();
  const std::vector<RuledName> ruled = ApplyRules(rules, names);
  NamedShapes shapes;
  for (size_t i = 0; i < names.size(); ++i) {
    if (ruled[i].drop) continue;
    std::vector<int64_t> dims = saved.dims(names[i]);
    if (ruled[i].transpose) std::ranges::reverse(dims);
    shapes.emplace(ruled[i].name, std::move(dims));
  }
  return shapes;
}

std::vector<std::pair<std::string, std::string>> RuledPairs(const std::string& weights,
                                                            const std::vector<NameRule>& rules) {
  const std::vector<std::string> names = training::SavedWeights(weights).names();
  const std::vector<RuledName> ruled = ApplyRules(rules, names);
  std::vector<std::pair<std::string, std::string>> pairs;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!ruled[i].drop) pairs.emplace_back(names[i], ruled[i].name);
  }
  return pairs;
}

std::string WriteConverted(const std::string& weights, const std::vector<NameRule>& rules,
                           const Conversion& conversion, const EmptyModel& model) {
  SKIFF_ENFORCE(!PathExists(conversion.output), kAlreadyExists, conversion.output,
                ": exists: expected the name of a new folder");
  Executor executor(Place::Cpu());
  executor.Run(model.startup);
  const training::InitialWeights taken =
      training::TakeWeights(weights, model.main, &executor.scope(),
                            {.allow_missing = conversion.allow_partial,
                             .allow_unused = conversion.allow_partial,
                             .rename = rules});
  TempFolder folder(StrCat(conversion.output, ".tmp-", getpid()));
  WriteFolder(folder.path(), model, executor.scope());
  folder.RenameTo(conversion.output);
  SyncDirectory(ParentDirectory(conversion.output));
  return Report(taken, model.main);
}

std::vector<NameRule> InTurn(std::vector<NameRule> first, const std::vector<NameRule>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

}  // namespace skiff::models
