#include "framework/io/safetensors.h"

#include "framework/io/array_names.h"
#include "framework/io/file.h"
#include "framework/io/mapped_file.h"
#include "framework/io/safetensors_header.h"
#include "framework/io/tensor_stream.h"
#include "memory/allocator.h"

namespace skiff {
namespace {

// A part of a mapping, which lives as long as the buffer. Each tensor has one of its own, so that
// buffers tell tensors apart, as elsewhere.
struct MappedBuffer {
  MappedBuffer(std::shared_ptr<MappedFile> file, int64_t offset, int64_t bytes)
      : mapping(std::move(file)), buffer(mapping->data() + offset, bytes, Place::Cpu()) {}

  std::shared_ptr<MappedFile> mapping;
  Buffer buffer;
};

using TakeTensor = Tensor (SafetensorsFile::*)(const std::string& name);

TensorMap TakeTensors(const std::string& path, const ArrayNames& names, TakeTensor take) {
  SafetensorsFile file(path);
  TensorMap tensors;
  ReadNamed(names, [&] {
    for (const std::string& name : names ? *names : file.names()) {
      tensors.emplace(name, (file.*take)(name));
    }
  });
  return tensors;
}

}  // namespace

struct SafetensorsFile::State {
  explicit State(const std::string& path)
      : file(path), header(ReadSafetensorsHeader(&file)), data_offset(file.offset()) {}

  const SafetensorsEntry& Entry(const std::string& name) const;
  // Returns the entry of a tensor that Skiff supports.
  const SafetensorsEntry& SupportedEntry(const std::string& name) const;

  InputFile file;
  SafetensorsHeader header;
  int64_t data_offset;
  std::shared_ptr<MappedFile> mapping;  // nullptr before the first tensor is mapped
};

SafetensorsFile::SafetensorsFile(const std::string& path) : state_(std::make_unique<State>(path)) {}
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;
SafetensorsFile::~SafetensorsFile() = default;

bool SafetensorsFile::Contains(const std::string& name) const {
  return state_->header.entries.contains(name);
}

const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return state_->header.metadata;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : state_->header.entries) names.push_back(name);
  return names;
}

std::vector<int64_t> SafetensorsFile::dims(const std::string& name) const {
  return state_->Entry(name).dims;
}

const SafetensorsEntry& SafetensorsFile::State::Entry(const std::string& name) const {
  const auto found = header.entries.find(name);
  SKIFF_ENFORCE(found != header.entries.end(), kNotFound, file.name(), " has no tensor \"", name,
                "\"");
  return found->second;
}

const SafetensorsEntry& SafetensorsFile::State::SupportedEntry(const std::string& name) const {
  const SafetensorsEntry& entry = Entry(name);
  SKIFF_ENFORCE(entry.dtype.has_value(), kUnimplemented, file.name(), ": tensor \"", name,
                "\": dtype ", entry.dtype_name, " is not supported");
  SKIFF_ENFORCE(entry.dims.size() <= Shape::kMaxRank, kUnimplemented, file.name(), ": tensor \"",
                name, "\" has rank ", entry.dims.size(), ", expected at most ", Shape::kMaxRank);
  return entry;
}

Tensor SafetensorsFile::Read(const std::string& name) {
  const SafetensorsEntry& entry = state_->SupportedEntry(name);
  try {
    state_->file.Seek(state_->data_offset + entry.begin);
    return ReadElements(*entry.dtype, entry.dims, &state_->file);
  } catch (const Error& error) {
    throw error.WithContext(StrCat("tensor \"", name, "\""));
  }
}

Tensor SafetensorsFile::Map(const std::string& name) {
  const SafetensorsEntry& entry = state_->SupportedEntry(name);
  const int64_t offset = state_->data_offset + entry.begin;
  const int64_t bytes = entry.end - entry.begin;
  if (bytes == 0 || offset % SizeOf(*entry.dtype) != 0 || entry.dtype == DType::kBool) {
    return Read(name);
  }
  if (state_->mapping == nullptr) state_->mapping = std::make_shared<MappedFile>(state_->file);
  const auto mapped = std::make_shared<MappedBuffer>(state_->mapping, offset, bytes);
  return {Shape(std::span<const int64_t>(entry.dims)), *entry.dtype,
          std::shared_ptr<Buffer>(mapped, &mapped->buffer)};
}

TensorMap ReadSafetensors(const std::string& path, const ArrayNames& names) {
  return TakeTensors(path, names, &SafetensorsFile::Read);
}

TensorMap MapSafetensors(const std::string& path, const ArrayNames& names) {
  return TakeTensors(path, names, &SafetensorsFile::Map);
}

void WriteSafetensors(const std::string& path, const TensorMap& tensors,
                      const std::map<std::string, std::string>& metadata) {
  for (const auto& [name, tensor] : tensors) {
    SKIFF_ENFORCE(tensor.has_data() && tensor.layout().is_plain(), kFailedPrecondition, path,
                  ": tensor \"", name, "\" can't be saved: expected storage of plain layout");
    SKIFF_ENFORCE(tensor.lod().empty(), kFailedPrecondition, path, ": tensor \"", name,
                  "\" has a LoD of ", tensor.lod().size(),
                  " levels, for which the format has no place: expected none");
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
