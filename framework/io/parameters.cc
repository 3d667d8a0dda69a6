#include "framework/io/parameters.h"

#include <algorithm>
#include <set>

#include "framework/io/file.h"
#include "framework/io/safetensors.h"
#include "framework/io/tensor_stream.h"
#include "framework/tensor/dims_agree.h"
#include "framework/tensor/replaced_values.h"

namespace skiff {
namespace {

// In Fluid's programs, the holders of feeds and fetches are persistable, but they have no tensor to
// save.
bool HoldsParameter(const Var& var) {
  switch (var.kind) {
    case VarKind::kFeedMinibatch:
    case VarKind::kFetchList:
    case VarKind::kReader:
    case VarKind::kRaw:
      return false;
    default:
      return var.persistable;
  }
}

void SortNames(std::vector<std::string>* names) {
  std::sort(names->begin(), names->end());
  const auto twice = std::adjacent_find(names->begin(), names->end());
  SKIFF_ENFORCE(twice == names->end(), kAlreadyExists, "variable \"", *twice, "\" is named twice");
}

// Names come from programs, which may come from anywhere, so they must not lead out of the
// directory.
std::string FileOf(const std::string& directory, const std::string& name) {
  bool legal = !name.empty() && name.find('\0') == std::string::npos;
  for (size_t begin = 0; legal && begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    legal = !part.empty() && part != "." && part != "..";
    begin = end + 1;
  }
  SKIFF_ENFORCE(legal, kInvalidArgument, "variable \"", name,
                "\" can't be a file of its own: expected a path inside the directory");
  return JoinPath(directory, name);
}

}  // namespace

const Var& PersistableOf(const Program& program, const std::string& name) {
  for (size_t i = 0; i < program.block_count(); ++i) {
    const Var* var = program.block(static_cast<int32_t>(i))->FindLocalVar(name);
    if (var != nullptr) return *var;
  }
  Throw(ErrorCode::kNotFound, "the program has no variable \"", name, "\"");
}

void CheckNoFolderAmong(const std::vector<std::string>& names) {
  const std::set<std::string> files(names.begin(), names.end());
  for (const std::string& name : names) {
    // Every prefix that ends before a slash is a folder.
    for (size_t end = name.find('/'); end != std::string::npos; end = name.find('/', end + 1)) {
      const std::string folder = name.substr(0, end);
      SKIFF_ENFORCE(!files.contains(folder), kInvalidArgument, "\"", name, "\" and \"", folder,
                    "\" can't be files of their own: the second would be the folder of the first");
    }
  }
}

std::vector<std::string> PersistableNames(const Program& program) {
  std::set<std::string> names;
  for (size_t i = 0; i < program.block_count(); ++i) {
    for (const auto& var : program.block(static_cast<int32_t>(i))->vars()) {
      if (HoldsParameter(*var)) names.insert(var->name);
    }
  }
  return {names.begin(), names.end()};
}

void CheckSavable(const Scope& scope, std::vector<std::string>* names) {
  SortNames(names);
  for (const std::string& name : *names) {
    const Tensor& tensor = scope.Get(name);
    SKIFF_ENFORCE(tensor.has_data() && tensor.layout().is_plain(), kFailedPrecondition,
                  "variable \"", name, "\" can't be saved: expected a tensor with storage, plain");
  }
}

void WriteTensorStreams(const Scope& scope, const std::vector<std::string>& names, ByteSink* sink) {
  for (const std::string& name : names) WriteTensorStream(scope.Get(name), sink);
}

NamedTensors ReadTensorStreams(const std::vector<std::string>& names, ByteSource* source) {
  NamedTensors tensors;
  for (const std::string& name : names) {
    try {
      tensors.emplace_back(name, ReadTensorStream(source));
    } catch (const Error& error) {
      throw error.WithContext(StrCat("variable \"", name, "\""));
    }
  }
  if (source->remaining() == 0) return tensors;
  source->ThrowCorrupt(source->offset(), source->remaining(), " bytes remain after the last of ",
                       names.size(), " variables, expected none");
}

void CheckFitsProgram(const Program& program, const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    const Var& var = PersistableOf(program, name);
    SKIFF_ENFORCE(var.kind == VarKind::kLoDTensor, kInvalidArgument, "variable \"", name,
                  "\" is a ", VarKindName(var.kind), ": only lod_tensor is loaded");
    SKIFF_ENFORCE(tensor.dtype() == var.dtype && DimsAgree(tensor.shape().dims(), var.dims),
                  kInvalidArgument, "variable \"", name, "\": the file holds ", tensor.dtype(), " ",
                  tensor.shape(), ", the program expects ", var.dtype, " [", Join(var.dims, ", "),
                  "]");
  }
}

void StoreTensors(NamedTensors tensors, Scope* scope) {
  // All names before the first change.
  for (const auto& [name, tensor] : tensors) ReplacedValues::CheckNotReplaced(*scope, name, "load");
  for (auto& [name, tensor] : tensors) {
    // Overwriting in place keeps the device and the generation of the scope, so that plans stay
    // current. LoD must be equal, too, since plans are made for its number of levels.
    const Tensor* slot = scope->Find(name);
    const bool fits = slot != nullptr && slot->has_data() && slot->layout().is_plain() &&
                      slot->shape() == tensor.shape() && slot->dtype() == tensor.dtype() &&
                      slot->lod() == tensor.lod();
    if (fits) {
      scope->Assign(name, tensor);
    } else {
      scope->Set(name, std::move(tensor));
    }
  }
}

void SaveCombined(const Scope& scope, std::vector<std::string> names, const std::string& path) {
  CheckSavable(scope, &names);
  AtomicFile file(path);
  WriteTensorStreams(scope, names, &file.sink());
  file.Commit();
}

void SaveSeparate(const Scope& scope, std::vector<std::string> names,
                  const std::string& directory) {
  CheckSavable(scope, &names);
  // Only for its Errors, before the first file is written.
  for (const std::string& name : names) FileOf(directory, name);
  CheckNoFolderAmong(names);
  CreateDirectories(directory);
  for (const std::string& name : names) {
    const std::string path = FileOf(directory, name);
    CreateDirectories(ParentDirectory(path));
    AtomicFile file(path);
    WriteTensorStream(scope.Get(name), &file.sink());
    file.Commit();
  }
}

void SaveSafetensors(const Scope& scope, std::vector<std::string> names, const std::string& path) {
  CheckSavable(scope, &names);
  TensorMap tensors;
  for (const std::string& name : names) tensors.emplace(name, scope.Get(name));
  WriteSafetensors(path, tensors);
}

void LoadCombined(const Program& program, std::vector<std::string> names, const std::string& path,
                  Scope* scope) {
  SortNames(&names);
  // Only for its Errors: a wrong name would otherwise look like a damaged file, since the streams
  // bear no names.
  for (const std::string& name : names) PersistableOf(program, name);
  InputFile file(path);
  NamedTensors tensors = ReadTensorStreams(names, &file);
  CheckFitsProgram(program, tensors);
  StoreTensors(std::move(tensors), scope);
}

void LoadSeparate(const Program& program, std::vector<std::string> names,
                  const std::string& directory, Scope* scope) {
  SortNames(&names);
  NamedTensors tensors;
  for (const std::string& name : names) {
    PersistableOf(program, name);
    InputFile file(FileOf(directory, name));
    tensors.push_back(std::move(ReadTensorStreams({name}, &file).front()));
  }
  CheckFitsProgram(program, tensors);
  StoreTensors(std::move(tensors), scope);
}

void LoadSafetensors(const Program& program, std::vector<std::string> names,
                     const std::string& path, Scope* scope) {
  SortNames(&names);
  SafetensorsFile file(path);
  NamedTensors tensors;
  for (const std::string& name : names) {
    PersistableOf(program, name);
    tensors.emplace_back(name, file.Read(name));
  }
  CheckFitsProgram(program, tensors);
  StoreTensors(std::move(tensors), scope);
}

}  // namespace skiff
