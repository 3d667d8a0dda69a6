#include <gflags/gflags.h>

#include <cstdio>

#include "framework/command_line/command_line.h"
#include "framework/io/file.h"
#include "tools/operator_docs/operator_docs.h"

DEFINE_string(differences, "tests/oracle/known_differences.txt",
              "where differences from PaddlePaddle are listed");
DEFINE_string(output, "docs/operators.md", "file to write");

int main(int argc, char** argv) {
  return skiff::CommandMain(
      argc, argv,
      {.usage = "operator_docs [flags]",
       .summary = "Writes the documentation of the operators from their definitions.",
       .run = [] {
         const std::string text =
             skiff::OperatorDocs(skiff::DefaultOpRegistry(), skiff::ReadFile(FLAGS_differences));
         skiff::AtomicWriteFile(FLAGS_output, text);
         std::printf("%s written\n", FLAGS_output.c_str());
         return 0;
       }});
}
