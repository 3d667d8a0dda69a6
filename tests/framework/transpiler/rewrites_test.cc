// What each pass makes of small programs and plans: rewrites/<pass>.txt has cases
// (tests/harness/text_cases.h) with the options
//
//   recompute=checkpoints        (and the others of SetOption, for plan passes)
//   rank=1/3                     (for program passes: rank 1 of 3)
//   needs=cuda                   (if ops have to run on a device: left out in builds without CUDA)
//
// `after: the same` says that the pass changes nothing. In texts, BLOCK is the number of channels
// of a block on the processor at hand.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/analysis/verify_plan.h"
#include "framework/base/cpu_features.h"
#include "framework/base/error.h"
#include "framework/comm/threads_communicator.h"
#include "framework/io/file.h"
#include "framework/ir/text.h"
#include "framework/plan/plan_text.h"
#include "framework/transpiler/pass.h"
#include "tests/harness/cuda_kernels.h"
#include "tests/harness/text_cases.h"
#include "tests/harness/thread_count.h"

namespace skiff {
namespace {

constexpr std::string_view kSame = " the same\n";
constexpr std::string_view kBlock = "BLOCK";

struct Rewrite : harness::TextCase {
  bool needs_blocks = false;
  bool needs_cuda = false;
};

void ReplaceAll(std::string_view old_text, std::string_view new_text, std::string* text) {
  for (size_t at = text->find(old_text); at != std::string::npos; at = text->find(old_text, at)) {
    text->replace(at, old_text.size(), new_text);
  }
}

std::vector<Rewrite> ReadRewrites(const std::string& pass) {
  std::vector<Rewrite> rewrites;
  for (harness::TextCase& one :
       harness::ReadTextCases(StrCat("tests/framework/transpiler/rewrites/", pass, ".txt"))) {
    Rewrite& rewrite = rewrites.emplace_back(Rewrite{std::move(one)});
    rewrite.needs_cuda = std::erase(rewrite.options, "needs=cuda") > 0;
    // A processor without blocked layouts has none to show.
    for (std::string* part : {&rewrite.before, &rewrite.after}) {
      rewrite.needs_blocks |= part->find(kBlock) != std::string::npos;
      ReplaceAll(kBlock, StrCat(PreferredChannelBlock()), part);
    }
  }
  return rewrites;
}

void SetOption(const std::string& option, PassContext* context) {
  const size_t equals = option.find('=');
  const std::string name = option.substr(0, equals);
  const std::string value = option.substr(equals + 1);
  if (name == "recompute") {
    context->memory.recompute = ParseRecompute(value);
  } else if (name == "checkpoint") {
    context->memory.checkpoints.push_back(value);
  } else if (name == "kernel") {
    context->forced_kernels[value] = "plain";
  } else if (name == "widened") {
    context->forced_kernels[value] = kWidened;
  } else {
    Throw(ErrorCode::kInvalidArgument,
          "expected recompute=…, checkpoint=…, kernel=… or widened=…, found ", option);
  }
}

void SetOption(const std::string& option, ProgramPassContext* context) {
  int rank = 0;
  int size = 0;
  SKIFF_ENFORCE(std::sscanf(option.c_str(), "rank=%d/%d", &rank, &size) == 2 && rank < size,
                kInvalidArgument, "expected rank=RANK/SIZE, found ", option);
  context->data_parallel.communicator = MakeThreadRanks(size).at(static_cast<size_t>(rank));
}

class Rewrites : public ::testing::TestWithParam<std::string> {
 protected:
  static const OpRegistry& registry() { return DefaultOpRegistry(); }

  static std::string Normalized(const std::string& text) {
    return IsPlan(text) ? PrintPlan(ParsePlan(registry(), text))
                        : PrintProgram(*ParseProgramText(text));
  }

  static bool IsText(const std::string& text) {
    return IsPlan(text) || text.find_first_not_of(" \n") == text.find("program ");
  }

  static bool IsPlan(const std::string& text) {
    return text.find_first_not_of(" \n") == text.find("plan ");
  }

  static std::string Apply(const std::string& pass, const Rewrite& rewrite) {
    if (!IsPlan(rewrite.before)) {
      ProgramPassContext context(registry());
      for (const std::string& option : rewrite.options) SetOption(option, &context);
      const auto program = ParseProgramText(rewrite.before);
      MakeProgramPass(pass)->Apply(context, program.get());
      return PrintProgram(*program);
    }
    PassContext context{.registry = registry()};
    for (const std::string& option : rewrite.options) SetOption(option, &context);
    Plan plan = ParsePlan(registry(), rewrite.before);
    CheckPlan(plan);
    MakePlanPass(pass)->Apply(context, &plan);
    CheckPlan(plan);
    return PrintPlan(plan);
  }
};

TEST_P(Rewrites, AreThoseOfTheFile) {
  // Fused loops are cut into a part for each thread.
  const harness::ThreadCount threads(2);
  const std::vector<Rewrite> rewrites = ReadRewrites(GetParam());
  bool changes = false;
  for (const Rewrite& rewrite : rewrites) {
    SCOPED_TRACE(StrCat("rewrites/", GetParam(), ".txt: ", rewrite.title));
    const bool same = rewrite.after.starts_with(kSame);
    changes = changes || !same;
    if (rewrite.needs_blocks && PreferredChannelBlock() == 1) continue;
    if (rewrite.needs_cuda && !harness::HasAnyCudaKernels(registry())) continue;
    const std::string found = Apply(GetParam(), rewrite);
    if (!same && !IsText(rewrite.after)) {
      // `after` isn't written yet.
      ADD_FAILURE() << "expected `after: the same` or a text; found\n" << found;
      continue;
    }
    EXPECT_EQ(found, Normalized(same ? rewrite.before : rewrite.after));
  }
  EXPECT_TRUE(changes) << "a file needs a case in which the pass changes something";
}

// Returns the first indented text of a file's first comment.
std::string ExampleOf(const std::string& header) {
  const std::string text = ReadFile(header);
  std::string example;
  size_t line = text.find("//   plan");
  while (text.compare(line, 5, "//   ") == 0) {
    const size_t end = text.find('\n', line);
    example += text.substr(line + 5, end + 1 - line - 5);
    line = end + 1;
  }
  return example;
}

TEST(PlanText, TheExampleOfTheHeaderIsAPlan) {
  const std::string example = ExampleOf("framework/plan/plan_text.h");
  const Plan plan = ParsePlan(DefaultOpRegistry(), example);
  EXPECT_NO_THROW(CheckPlan(plan));
  EXPECT_EQ(PrintPlan(plan), example);
}

std::vector<std::string> AllPasses() {
  std::vector<std::string> names = ProgramPassNames();
  for (const std::string& name : PlanPassNames()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Each, Rewrites, ::testing::ValuesIn(AllPasses()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace skiff
