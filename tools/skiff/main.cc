#include <gflags/gflags.h>

#include "framework/command_line/command_line.h"
#include "tools/skiff/convert.h"
#include "tools/skiff/memory.h"
#include "tools/skiff/plan_memory.h"
#include "tools/skiff/summary.h"
#include "tools/skiff/verify.h"

DEFINE_bool(json, false, "print the figures as JSON");

int main(int argc, char** argv) {
  return skiff::SubcommandMain(
      argc, argv, "Tools of Skiff.",
      {skiff::ConvertSubcommand(), skiff::MemorySubcommand(), skiff::PlanMemorySubcommand(),
       skiff::SummarySubcommand(), skiff::VerifySubcommand()});
}
