// Tensors are read into memory of their own. The format aligns them to 8 bytes at most, kernels
// expect parameters at multiples of kBufferAlignment, and a mapped file that another process
// shortens would end this one with a signal instead of an Error.
#include "framework/io/safetensors.h"

#include "framework/io/tensor_stream.h"

namespace skiff {

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(path), header_(ReadSafetensorsHeader(&file_)), data_offset_(file_.offset()) {}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : header_.entries) names.push_back(name);
  return names;
}

Tensor SafetensorsFile::Read(const std::string& name) {
  const auto found = header_.entries.find(name);
  SKIFF_ENFORCE(found != header_.entries.end(), kNotFound, file_.name(), " has no tensor \"", name,
                "\"");
  const SafetensorsEntry& entry = found->second;
  const std::string where = StrCat("tensor \"", name, "\"");
  SKIFF_ENFORCE(entry.dtype.has_value(), kUnimplemented, file_.name(), ": ", where, ": dtype ",
                entry.dtype_name, " is not supported");
  SKIFF_ENFORCE(entry.dims.size() <= Shape::kMaxRank, kUnimplemented, file_.name(), ": ", where,
                " has rank ", entry.dims.size(), ", expected at most ", Shape::kMaxRank);
  try {
    file_.Seek(data_offset_ + entry.begin);
    return ReadElements(*entry.dtype, entry.dims, &file_);
  } catch (const Error& error) {
    throw error.WithContext(where);
  }
}

TensorMap ReadSafetensors(const std::string& path) {
  SafetensorsFile file(path);
  TensorMap tensors;
  for (const std::string& name : file.names()) tensors.emplace(name, file.Read(name));
  return tensors;
}

void WriteSafetensors(const std::string& path, const TensorMap& tensors,
                      const std::map<std::string, std::string>& metadata) {
  for (const auto& [name, tensor] : tensors) {
    SKIFF_ENFORCE(tensor.has_data() && tensor.layout().is_plain(), kFailedPrecondition, path,
                  ": tensor \"", name, "\" can't be saved: expected storage of plain layout");
  }
  const std::vector<std::string> order = SafetensorsOrder(tensors);
  const std::string header = SafetensorsHeaderBytes(tensors, order, metadata);
  AtomicFile file(path);
  file.sink().Write(header);
  for (const std::string& name : order) WriteElements(tensors.at(name), &file.sink());
  file.Commit();
}

bool IsSafetensorsPath(std::string_view path) { return path.ends_with(".safetensors"); }

}  // namespace skiff
