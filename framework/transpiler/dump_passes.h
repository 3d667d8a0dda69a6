// What the passes make of a program, step by step, in files to read and to compare.
#pragma once

#include <string>

#include "framework/transpiler/pass.h"

namespace skiff {

// Makes each pass that runs write what it left to <directory>/<number>_<pass>.txt, numbered from 1
// in the order in which they run, every plan of a program included: the program as text
// (framework/ir/text.h) or the plan (PrintPlan), below a line `# <pass>: <summary>`. Makes the
// directory. Sets both observers of the options.
void DumpPasses(const std::string& directory, PipelineOptions* options);

}  // namespace skiff
