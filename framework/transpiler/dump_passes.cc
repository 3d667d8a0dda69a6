#include "framework/transpiler/dump_passes.h"

#include <memory>

#include "framework/base/error.h"
#include "framework/io/file.h"
#include "framework/ir/text.h"
#include "framework/plan/plan_text.h"

namespace skiff {

void DumpPasses(const std::string& directory, PipelineOptions* options) {
  CreateDirectories(directory);
  // The observers are copied, but all copies share the count. Files are written at once and
  // atomically, so that those of a program that crashes in a later pass are complete.
  const auto write = [directory, count = std::make_shared<int>(0)](const PassReport& report,
                                                                   const std::string& text) {
    const int number = ++*count;
    // Two digits, so that listings show the files in order.
    const std::string name = StrCat(number < 10 ? "0" : "", number, "_", report.pass, ".txt");
    AtomicWriteFile(JoinPath(directory, name),
                    StrCat("# ", report.pass, ": ", report.summary, "\n", text));
  };
  options->program_observer = [write](const PassReport& report, const Program& program) {
    write(report, PrintProgram(program));
  };
  options->plan_observer = [write](const PassReport& report, const Plan& plan) {
    write(report, PrintPlan(plan));
  };
}

}  // namespace skiff
