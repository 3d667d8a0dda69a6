// Files of the safetensors format: tensors by name, and strings that describe them. PyTorch, JAX
// and most tools that exchange weights read and write it. It has no LoD.
//
// The dtypes are all of Skiff's: BOOL, U8, I8, I16, I32, I64, F16, BF16, F32 and F64.
// Source: https://github.com/huggingface/safetensors, "Format".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/file.h"
#include "framework/io/safetensors_header.h"
#include "framework/io/tensor_stream.h"

namespace skiff {

// A file that is open for reading: its header is in memory, its tensors aren't.
class SafetensorsFile {
 public:
  // Reads the header. Throws Error (kNotFound, kIo) as InputFile, and (kDataLoss), which says
  // where, for anything that the format doesn't allow: a header of more than 100 MB, one that isn't
  // an object in JSON or has a key twice, an entry with other members than dtype, shape and
  // data_offsets, metadata other than strings, tensors that overlap, leave gaps or don't end with
  // the file, or have other bytes than shape and dtype take.
  explicit SafetensorsFile(const std::string& path);

  // Returns the names in ascending byte order.
  std::vector<std::string> names() const;
  bool Contains(const std::string& name) const { return header_.entries.contains(name); }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  // Reads a tensor to the CPU, and no other bytes of the file. Throws Error (kNotFound) for a name
  // that the file doesn't have, (kUnimplemented) for a dtype or a rank that Skiff doesn't support,
  // and (kDataLoss) for a bool other than 0 and 1 or if the file has shrunk.
  Tensor Read(const std::string& name);

 private:
  InputFile file_;
  SafetensorsHeader header_;
  int64_t data_offset_;
};

// Reads all tensors. Throws what SafetensorsFile and Read throw.
TensorMap ReadSafetensors(const std::string& path);

// Writes a file atomically, one tensor after the other. Equal tensors and metadata give equal
// bytes: those that the format's own library writes (with several metadata, it leaves their order
// to chance). Throws Error as AtomicFile; (kFailedPrecondition) for a tensor without storage or of
// a blocked layout; (kInvalidArgument) for names and metadata that aren't UTF-8, and for a tensor
// named __metadata__; (kOutOfRange) for a header of more than 100 MB.
void WriteSafetensors(const std::string& path, const TensorMap& tensors,
                      const std::map<std::string, std::string>& metadata = {});

// Returns whether a path ends with `.safetensors`.
bool IsSafetensorsPath(std::string_view path);

}  // namespace skiff
