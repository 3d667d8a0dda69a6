// What AppendBackward makes of programs: backward/<topic>.txt has cases
// (tests/harness/text_cases.h) of a program before and after, with what AppendBackward returns, or
// with its Error. Options:
//
//   loss=…          the loss, "loss" otherwise; several lines call AppendBackward several times
//   no_grad=…, parameters=…, inputs=…      one name of the list of this name in BackwardOptions
//   needs_parameter
//   site=1 net.cc:7          where op 1 of block 0 was made
//
// Two ops are for these tests: run_block runs a block any number of times, and has a gradient rule
// that an op without a block could have; round_off has no gradient.
#include "framework/autodiff/append_backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "framework/analysis/verifier.h"
#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "framework/op/grad.h"
#include "framework/op/op_context.h"
#include "framework/op/registry.h"
#include "tests/harness/text_cases.h"

namespace skiff {
namespace {

using harness::TextCase;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAreArray;

const OpRegistry& Registry() {
  static const OpRegistry& registry = *[] {
    OpRegistry* changed = &DefaultOpRegistry();
    changed->Add({.type = "run_block",
                  .doc = "For the test: runs a block any number of times.",
                  .inputs = {{.name = "X", .duplicable = true, .dispensable = true}},
                  .outputs = {{.name = "Out", .duplicable = true, .dispensable = true}},
                  .infer = [](OpContext&) {},
                  .grad = GradOp("run_block_grad", {"X", "Out@GRAD"}, {"X@GRAD"})});
    changed->Add({.type = "round_off",
                  .doc = "For the test.",
                  .inputs = {{.name = "X"}},
                  .outputs = {{.name = "Out"}},
                  .infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); },
                  .no_gradient_reason = "it is flat"});
    return changed;
  }();
  return registry;
}

struct Request {
  std::vector<std::string> losses = {};
  BackwardOptions options = {};
};

// Reads "1 net.cc:7".
void SetSite(const std::string& text, Program* program) {
  const size_t blank = text.find(' ');
  const size_t colon = text.find(':');
  SKIFF_ENFORCE(blank < colon && colon != std::string::npos, kInvalidArgument,
                "expected <op> <file>:<line>, found ", text);
  program->root()->ops().at(std::stoul(text))->site = {
      .file = text.substr(blank + 1, colon - blank - 1), .line = std::stoi(text.substr(colon + 1))};
}

Request ReadOptions(const TextCase& one, Program* program) {
  Request request;
  for (const std::string& option : one.options) {
    const std::string name = option.substr(0, option.find('='));
    const std::string value = option.substr(std::min(name.size() + 1, option.size()));
    if (name == "loss") {
      request.losses.push_back(value);
    } else if (name == "no_grad") {
      request.options.no_grad.push_back(value);
    } else if (name == "parameters") {
      request.options.parameters.push_back(value);
    } else if (name == "inputs") {
      request.options.inputs.push_back(value);
    } else if (name == "needs_parameter") {
      request.options.needs_parameter = true;
    } else if (name == "site") {
      SetSite(value, program);
    } else {
      Throw(ErrorCode::kInvalidArgument, "unknown option ", option);
    }
  }
  if (request.losses.empty()) request.losses = {"loss"};
  return request;
}

std::string ResultText(const BackwardResult& result) {
  std::vector<std::string> parameters;
  for (const ParameterGradient& pair : result.parameters) {
    parameters.push_back(StrCat(pair.parameter->name, " = ", pair.gradient->name));
  }
  std::vector<std::string> gradients;
  for (const auto& [forward, gradient] : result.gradients) {
    gradients.push_back(StrCat(forward, " = ", gradient));
  }
  return StrCat("parameters: ", Join(parameters, ", "), "\ngradients: ", Join(gradients, ", "),
                "\n");
}

std::string TextAfter(const TextCase& one) {
  const auto program = ParseProgramText(one.before);
  const Request request = ReadOptions(one, program.get());
  // The slots of run_block may hide what its block does.
  const bool was_valid = VerifyProgram(Registry(), *program).empty();
  BackwardResult result;
  for (const std::string& loss : request.losses) {
    const auto before = program->Clone();
    try {
      result = AppendBackward(Registry(), program.get(), loss, request.options);
    } catch (const Error& error) {
      EXPECT_TRUE(*program == *before) << "the program isn't what it was before the Error";
      return StrCat("\n", ErrorCodeName(error.code()), ": ", error.what(), "\n");
    }
  }
  if (was_valid) {
    EXPECT_THAT(VerifyProgram(Registry(), *program), IsEmpty());
  }
  return StrCat("\n", PrintProgram(*program), ResultText(result));
}

constexpr const char* kFolder = "tests/framework/autodiff/backward/";
constexpr const char* kTopics[] = {"blocks",  "branches", "networks", "overwritten", "recurrent",
                                   "refused", "sparse",   "sums",     "wanted",      "while"};

class AppendBackwardTest : public ::testing::TestWithParam<const char*> {};

TEST_P(AppendBackwardTest, MakesTheProgramsOfTheFile) {
  harness::CheckTextCases(StrCat(kFolder, GetParam(), ".txt"), TextAfter);
}

INSTANTIATE_TEST_SUITE_P(Each, AppendBackwardTest, ::testing::ValuesIn(kTopics),
                         [](const auto& info) { return std::string(info.param); });

TEST(AppendBackwardFiles, AreAllTested) {
  std::vector<std::string> topics;
  for (const auto& file : std::filesystem::directory_iterator(kFolder)) {
    topics.push_back(file.path().stem());
  }
  EXPECT_THAT(topics, UnorderedElementsAreArray(kTopics));
}

}  // namespace
}  // namespace skiff
