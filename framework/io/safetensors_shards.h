// Tensors of a model in a safetensors file, or in several with an index. The index is a JSON object
// whose `weight_map` has the file of each tensor, as Hugging Face's libraries write it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/safetensors.h"

namespace skiff {

class SafetensorsShards {
 public:
  // Opens a `.safetensors` file, or an index (`.safetensors.index.json`) and the files beside the
  // index. Throws what SafetensorsFile throws, and an Error (kDataLoss) with the index: for an
  // index of another form, for a file in another folder, for a file that isn't there, and unless
  // each tensor is in exactly the file of the index.
  explicit SafetensorsShards(const std::string& path);

  // Returns the names in ascending byte order.
  std::vector<std::string> names() const;
  bool Contains(const std::string& name) const { return file_of_.contains(name); }
  // Return a tensor's dims and elements. Throw what SafetensorsFile throws.
  std::vector<int64_t> dims(const std::string& name) const;
  Tensor Read(const std::string& name);

 private:
  void OpenIndexed(const std::string& index);
  void Add(const std::string& path);

  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> file_of_;  // tensor to index into files_
};

// Returns whether a path has the ending of a file that SafetensorsShards opens.
bool IsSafetensorsShardsPath(std::string_view path);

}  // namespace skiff
