// The persistable variables of a program as files, in Fluid's two layouts and as safetensors.
//
// Combined: one file of tensor streams without names, in ascending order of the names
// (save_combine, .pdiparams). Separate: a directory with one tensor stream per variable; the
// variable's name is the file name, and a `/` in it makes a folder. Safetensors: one file with
// names for the tensors (safetensors.h), without LoD.
//
// Files are written atomically: a failure leaves the old ones. Loading reads everything before it
// changes the scope: a failure leaves the scope as it was. A variable with storage of the right
// dtype and shape is overwritten in place, on its device; any other gets new storage on the CPU. A
// variable that holds a replaced value (ReplacedValues) is saved with the replaced value. Loading
// it throws Error (kFailedPrecondition), since the end of the replacement would discard the loaded
// value.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/api/program.h"
#include "framework/tensor/scope.h"

namespace skiff {

// Returns the names of the persistable variables of all blocks, in ascending byte order, without
// those of kinds feed_minibatch, fetch_list, reader and raw.
std::vector<std::string> PersistableNames(const Program& program);

// Save the variables with these names, in any order. Throw Error, before writing anything,
// (kNotFound) for a name that the scope doesn't hold, (kAlreadyExists) for a name given twice,
// (kFailedPrecondition) for a tensor without storage, and (kInvalidArgument) for a name that
// WriteSafetensors refuses; in SaveSeparate, also for a name that can't be a file name or is the
// folder of another name; later as AtomicFile.
void SaveCombined(const Scope& scope, std::vector<std::string> names, const std::string& path);
void SaveSeparate(const Scope& scope, std::vector<std::string> names, const std::string& directory);
void SaveSafetensors(const Scope& scope, std::vector<std::string> names, const std::string& path);

// Load the program's variables with these names. For the combined layout, the names must be exactly
// the saved ones; a safetensors file may hold others as well. Throw Error (kNotFound) for a name
// missing in the program or in the file(s), (kInvalidArgument) for a tensor whose dtype or shape
// isn't the variable's (a dim of -1 accepts any) and for a variable other than a lod_tensor,
// (kDataLoss) for corrupt files and for bytes left over, and (kUnimplemented) for dtypes that Skiff
// doesn't have.
void LoadCombined(const Program& program, std::vector<std::string> names, const std::string& path,
                  Scope* scope);
void LoadSeparate(const Program& program, std::vector<std::string> names,
                  const std::string& directory, Scope* scope);
void LoadSafetensors(const Program& program, std::vector<std::string> names,
                     const std::string& path, Scope* scope);

}  // namespace skiff
