#include "tools/skiff/verify.h"

#include <gflags/gflags.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/analysis/verifier.h"
#include "framework/base/error.h"
#include "framework/executor/lowering/plan_check.h"
#include "framework/io/file.h"
#include "framework/ir/codec.h"
#include "framework/op/registry.h"

DEFINE_string(program, "", "file with the serialised ProgramDesc to check");
DECLARE_bool(json);

namespace skiff {
namespace {

// Errors mean that Skiff can't run the program; warnings are what it tolerates, found while reading
// the file or while checking the ops.
struct Findings {
  size_t blocks = 0;
  size_t ops = 0;
  std::vector<std::string> warnings;
  std::vector<std::string> errors;
};

std::unique_ptr<Program> Load(const std::string& path, std::vector<std::string>* warnings) {
  const std::string bytes = ReadFile(path);
  // ParseProgram sees bytes only, so the name of the file is added to its errors here.
  try {
    return ParseProgram(bytes, warnings);
  } catch (const Error& error) {
    throw error.WithContext(path);
  }
}

Findings Verify(const std::string& path) {
  Findings findings;
  const std::unique_ptr<Program> program = Load(path, &findings.warnings);
  findings.blocks = program->block_count();
  for (size_t i = 0; i < findings.blocks; ++i) {
    findings.ops += program->block(static_cast<int32_t>(i))->ops().size();
  }
  // Wrong declarations are warnings, since PaddlePaddle writes such files itself: it declares, for
  // example, the outputs of accuracy as floats, but computes ints.
  findings.errors = VerifyProgram(DefaultOpRegistry(), *program, {.warnings = &findings.warnings});
  if (!findings.errors.empty()) return findings;
  const std::optional<NoPlan> none = FindNoPlan(DefaultOpRegistry(), *program);
  if (none) (none->is_certain ? findings.errors : findings.warnings).push_back(none->why);
  return findings;
}

std::string Counted(size_t count, const std::string& what) {
  return StrCat(count, " ", what, count == 1 ? "" : "s");
}

void PrintText(const Findings& findings) {
  for (const std::string& warning : findings.warnings)
    std::printf("warning: %s\n", warning.c_str());
  for (const std::string& error : findings.errors) std::printf("error: %s\n", error.c_str());
  std::printf("%s: %s, %s; %s, %s\n", FLAGS_program.c_str(),
              Counted(findings.blocks, "block").c_str(), Counted(findings.ops, "op").c_str(),
              Counted(findings.errors.size(), "error").c_str(),
              Counted(findings.warnings.size(), "warning").c_str());
}

void PrintJson(const Findings& findings) {
  const nlohmann::ordered_json json = {{"program", FLAGS_program},
                                       {"blocks", findings.blocks},
                                       {"ops", findings.ops},
                                       {"errors", findings.errors},
                                       {"warnings", findings.warnings}};
  // Names in a file may be any bytes.
  const std::string text =
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  std::printf("%s\n", text.c_str());
}

int Run() {
  const Findings findings = Verify(FLAGS_program);
  FLAGS_json ? PrintJson(findings) : PrintText(findings);
  return findings.errors.empty() ? 0 : 1;
}

}  // namespace

Subcommand VerifySubcommand() {
  return {
      .name = "verify",
      .summary = "checks whether Skiff can run a saved program",
      .command = {.usage = "skiff verify FILE [--json]",
                  .summary =
                      "Loads a serialised ProgramDesc, such as __model__, checks it with all "
                      "shapes, and makes its plan.\nPrints a line for each error (Skiff can't "
                      "run the program) and each warning (it can, but the\nfile is "
                      "inconsistent: repeated attributes, attributes of another type whose value "
                      "fits, declared\nshapes that differ from those that the op computes, "
                      "pooling windows without a pixel; or there is\nno plan for a few sizes of "
                      "what the program leaves open), with the block and the op. Exit\nstatus: "
                      "0, or 1 if there are errors.",
                  .run = Run,
                  .flags = {"json"},
                  .operand = "program"}};
}

}  // namespace skiff
