// The pieces of saving and loading parameters, for other files that hold tensors.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/io/api/parameters.h"
#include "framework/io/byte_stream.h"
#include "framework/ir/program.h"

namespace skiff {

// Returns the first variable of that name, starting at the root: a persistable has one name in all
// blocks. Throws Error (kNotFound) if the program has none.
const Var& PersistableOf(const Program& program, const std::string& name);

// Throws Error (kInvalidArgument) if a name, taken as the path of a file, is the folder of another
// one, as `a` is the folder of `a/b`.
void CheckNoFolderAmong(const std::vector<std::string>& names);

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
// Sorts the names and throws what SaveCombined throws before writing.
void CheckSavable(const Scope& scope, std::vector<std::string>* names);
void WriteTensorStreams(const Scope& scope, const std::vector<std::string>& names, ByteSink* sink);
// Reads one stream per name, up to the end of the source. Errors contain the name.
NamedTensors ReadTensorStreams(const std::vector<std::string>& names, ByteSource* source);
// Throws Error unless each tensor fits the program's variable of its name.
void CheckFitsProgram(const Program& program, const NamedTensors& tensors);
void StoreTensors(NamedTensors tensors, Scope* scope);

}  // namespace skiff
