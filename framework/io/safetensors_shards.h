// Tensors of a model that is in one safetensors file, or in several that an index lists: a JSON
// object whose `weight_map` has the file of each tensor, as Hugging Face's libraries write it.
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
  // Opens a `.safetensors` file, or the index (a `.json` file) and the files beside it that the
  // index names. Throws what SafetensorsFile throws, and an Error: (kDataLoss) with the index for
  // an index that isn't as above, that names a file in another folder or a file that isn't there,
  // and unless each tensor is in exactly one file, the file that the index says.
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
