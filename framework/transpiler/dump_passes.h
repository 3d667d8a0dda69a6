// Writes the result of each pass to a file, to read and to compare.
#pragma once

#include <string>

#include "framework/transpiler/pass.h"

namespace skiff {

// Sets both observers of the options: after each pass, the program or plan is written to
// <directory>/<number>_<pass>.txt: a line `# <pass>: <summary>`, then the program as text
// (framework/ir/text.h) or the plan (framework/plan/plan_text.h). Numbers begin at 1 and follow the
// order in which the passes run, over all plans of a program. Creates the directory.
void DumpPasses(const std::string& directory, PipelineOptions* options);

}  // namespace skiff
