// Files of the safetensors format: tensors by name, and strings that describe them. PyTorch, JAX
// and most tools that exchange weights read and write it. It has no LoD.
//
// The dtypes are all of Skiff's: BOOL, U8, I8, I16, I32, I64, F16, BF16, F32 and F64.
// Source: https://github.com/huggingface/safetensors, "Format".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/io/api/tensor_map.h"
#include "framework/tensor/api/tensor.h"

namespace skiff {

// A file that is open for reading: its header is in memory, its tensors aren't.
class SafetensorsFile {
 public:
  // Reads the header. Throws Error (kNotFound, kIo) as InputFile, and (kDataLoss), which says
  // where, for anything that the format doesn't allow: a header of more than 100 MB, not an object
  // in JSON or with a key twice; an entry without dtype, shape and data_offsets; metadata other
  // than strings; tensors that overlap, leave gaps, don't end with the file, or have other bytes
  // than shape and dtype take. Like the format's own library, it takes `null` for no metadata and
  // doesn't look at other members of an entry.
  explicit SafetensorsFile(const std::string& path);
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  // Returns the names in ascending byte order.
  std::vector<std::string> names() const;
  bool Contains(const std::string& name) const;
  // Returns a tensor's dims, also if its dtype or rank isn't supported. Throws Error (kNotFound).
  std::vector<int64_t> dims(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const;

  // Reads a tensor to the CPU, and no other bytes of the file. Throws Error (kNotFound) for a name
  // that the file doesn't have, (kUnimplemented) for a dtype or a rank that Skiff doesn't support,
  // and (kDataLoss) for a bool other than 0 and 1 or if the file has shrunk.
  Tensor Read(const std::string& name);

  // Returns a tensor in the memory of a MappedFile, which it keeps alive, also without this object.
  // Elements are read when they are touched. Writing to the tensor doesn't change the file; only
  // tensors of the same name from this object see the new elements. A tensor that isn't aligned to
  // its elements in the file is read, as by Read. So are bools, whose values must be checked, and
  // tensors without elements.
  //
  // As long as the tensor exists, no process may shorten the file or write to it: SIGBUS would end
  // this process (see MappedFile). WriteSafetensors may replace it: the tensor keeps the old
  // values.
  //
  // Throws what Read and MappedFile throw.
  Tensor Map(const std::string& name);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Read or map tensors. Throw the Errors of SafetensorsFile and its functions Read and Map.
TensorMap ReadSafetensors(const std::string& path, const ArrayNames& names = {});
TensorMap MapSafetensors(const std::string& path, const ArrayNames& names = {});

// Writes a file atomically, one tensor after the other. Equal tensors and metadata give equal
// bytes. The JSON and the elements are those of the format's own library (with several metadata,
// the library leaves their order to chance). Additional spaces between JSON and elements make the
// elements begin at a multiple of kBufferAlignment, as elements of tensors in memory do. Throws
// Error as AtomicFile; (kFailedPrecondition) for a tensor without storage, of a blocked layout or
// with a LoD; (kInvalidArgument) for names and metadata that aren't UTF-8, and for a tensor named
// __metadata__; (kOutOfRange) for a header of more than 100 MB.
void WriteSafetensors(const std::string& path, const TensorMap& tensors,
                      const std::map<std::string, std::string>& metadata = {});

// Returns whether a path ends with `.safetensors`.
bool IsSafetensorsPath(std::string_view path);

}  // namespace skiff
