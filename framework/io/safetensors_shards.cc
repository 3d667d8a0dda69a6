#include "framework/io/safetensors_shards.h"

#include <nlohmann/json.hpp>
#include <set>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/io/json.h"

namespace skiff {
namespace {

constexpr std::string_view kIndexEnding = ".safetensors.index.json";

using FileOf = std::map<std::string, std::string>;

// A file's name in the index must not lead out of the index's folder.
void CheckShardName(const nlohmann::json& file, const std::string& where) {
  const bool is_name = file.is_string() && IsSafetensorsPath(file.get<std::string>()) &&
                       file.get<std::string>().find('/') == std::string::npos;
  SKIFF_ENFORCE(is_name, kDataLoss, where, ": found ", QuotedJson(file),
                ", expected the name of a .safetensors file beside the index");
}

FileOf ReadIndex(const std::string& index) {
  const nlohmann::json json = ParseJson(ReadFile(index), index);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  SKIFF_ENFORCE(map != json.end() && map->is_object() && !map->empty(), kDataLoss, index,
                ": expected an object with a \"weight_map\" that has the file of each tensor");
  FileOf file_of;
  for (const auto& [name, file] : map->items()) {
    CheckShardName(file, StrCat(index, ": tensor \"", name, "\""));
    file_of.emplace(name, file.get<std::string>());
  }
  return file_of;
}

}  // namespace

SafetensorsShards::SafetensorsShards(const std::string& path) {
  path.ends_with(kIndexEnding) ? OpenIndexed(path) : Add(path);
}

void SafetensorsShards::Add(const std::string& path) {
  files_.emplace_back(path);
  for (const std::string& name : files_.back().names()) {
    const auto [other, is_new] = file_of_.emplace(name, files_.size() - 1);
    SKIFF_ENFORCE(is_new, kDataLoss, path, ": tensor \"", name,
                  "\" is in another file of the model, too");
  }
}

void SafetensorsShards::OpenIndexed(const std::string& index) {
  const FileOf expected = ReadIndex(index);
  std::set<std::string> shards;
  for (const auto& [name, file] : expected) shards.insert(file);
  std::map<std::string, size_t> numbers;
  for (const std::string& shard : shards) {
    const std::string path = JoinPath(ParentDirectory(index), shard);
    SKIFF_ENFORCE(PathExists(path), kDataLoss, index, ": names the file ", shard,
                  ", which isn't there");
    numbers.emplace(shard, files_.size());
    Add(path);
  }
  for (const auto& [name, file] : expected) {
    const auto found = file_of_.find(name);
    SKIFF_ENFORCE(found != file_of_.end() && found->second == numbers.at(file), kDataLoss, index,
                  ": tensor \"", name, "\" isn't in ", file);
  }
  for (const auto& [name, number] : file_of_) {
    SKIFF_ENFORCE(expected.contains(name), kDataLoss, index, ": doesn't list tensor \"", name,
                  "\", which one of its files has");
  }
}

std::vector<std::string> SafetensorsShards::names() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : file_of_) names.push_back(name);
  return names;
}

std::vector<int64_t> SafetensorsShards::dims(const std::string& name) const {
  const auto found = file_of_.find(name);
  SKIFF_ENFORCE(found != file_of_.end(), kNotFound, "there is no tensor \"", name, "\"");
  return files_[found->second].dims(name);
}

Tensor SafetensorsShards::Read(const std::string& name) {
  const auto found = file_of_.find(name);
  SKIFF_ENFORCE(found != file_of_.end(), kNotFound, "there is no tensor \"", name, "\"");
  return files_[found->second].Read(name);
}

bool IsSafetensorsShardsPath(std::string_view path) {
  return IsSafetensorsPath(path) || path.ends_with(kIndexEnding);
}

}  // namespace skiff
