// The persistable variables of a program as files, in the two layouts of Fluid.
//
// Combined: one file of tensor streams without names, in ascending order of the names
// (save_combine, .pdiparams). Separate: a directory with one tensor stream a variable, the file
// named as the variable; a `/` in the name makes a folder.
//
// Files are written atomically: a failure leaves what was there before. Loading reads everything
// before it touches the scope: a failure leaves the scope as it was. A variable whose storage fits
// (dtype, shape) is overwritten in place, on its device; else it gets new storage on the CPU. One
// that holds a replaced value (ReplacedValues) is saved as it is, but loading it is an Error
// (kFailedPrecondition), since what was loaded would be lost with it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "framework/io/byte_stream.h"
#include "framework/ir/program.h"
#include "framework/tensor/scope.h"

namespace skiff {

// The names of the persistable variables of all blocks, in ascending byte order, without those of
// kinds feed_minibatch, fetch_list, reader and raw.
std::vector<std::string> PersistableNames(const Program& program);

// `names` may come in any order. Error, before anything is written: kNotFound for a name that the
// scope doesn't hold, kAlreadyExists for one given twice, kFailedPrecondition for a tensor without
// storage, kInvalidArgument for a name that can't be a file's (separate). Else as AtomicFile.
void SaveCombined(const Scope& scope, std::vector<std::string> names, const std::string& path);
void SaveSeparate(const Scope& scope, std::vector<std::string> names, const std::string& directory);

// Loads the variables of the program that bear `names`, which, for the combined layout, must be
// exactly those that were saved. Error: kNotFound for a name that isn't in the program or has no
// file, kInvalidArgument for a tensor whose dtype or shape isn't the variable's (a dim of -1 takes
// any) or a variable that is no lod_tensor, kDataLoss for corrupt files and bytes that remain.
void LoadCombined(const Program& program, std::vector<std::string> names, const std::string& path,
                  Scope* scope);
void LoadSeparate(const Program& program, std::vector<std::string> names,
                  const std::string& directory, Scope* scope);

// The pieces, for other files that hold tensors.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
// Sorts the names. Errors as for SaveCombined.
void CheckSavable(const Scope& scope, std::vector<std::string>* names);
void WriteTensorStreams(const Scope& scope, const std::vector<std::string>& names, ByteSink* sink);
// One stream a name, up to the end of the source. Errors carry the name.
NamedTensors ReadTensorStreams(const std::vector<std::string>& names, ByteSource* source);
// Error unless each tensor fits the program's variable of its name.
void CheckFitsProgram(const Program& program, const NamedTensors& tensors);
void StoreTensors(NamedTensors tensors, Scope* scope);

}  // namespace skiff
