#include "framework/transpiler/dump_passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/temp_directory.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class DumpPassesTest : public ::testing::Test {
 protected:
  DumpPassesTest() { tiny::RegisterTinyOps(registry_); }

  // Two plans of a program; z is fetched in neither.
  std::unique_ptr<Program> Run(PipelineOptions options) {
    DumpPasses(folder_ / "passes", &options);
    Executor executor(Place::Cpu(), nullptr, &registry_);
    CompiledProgram compiled = executor.Compile(*ParseProgramText(R"(program { block 0 {
      var x float32 [-1]
      var y float32 [-1]
      var z float32 [-1]
      {Out: [y]} = tiny_scale(X: [x]) {factor = 2.0}
      {Out: [z]} = tiny_copy(X: [y])
    } })"),
                                                {.passes = options});
    for (const int64_t rows : {2, 3})
      compiled.Bind({{"x", Tensor({rows}, DType::kFloat32)}}, {"y"});
    return compiled.program().Clone();
  }

  std::string Dumped(const std::string& file) const { return BytesOf(folder_ / "passes/" + file); }

  OpRegistry registry_;
  TempDirectory folder_;
};

TEST_F(DumpPassesTest, WritesAFileForEachPassOfTheProgramAndOfEveryPlan) {
  std::vector<std::string> others = DefaultPlanPasses();
  std::erase(others, "dead_code");
  std::erase(others, "memory_reuse");
  Run({.skip = others});
  EXPECT_THAT(NamesIn(folder_ / "passes"),
              ElementsAre("01_early_update.txt", "02_dead_code.txt", "03_memory_reuse.txt",
                          "04_dead_code.txt", "05_memory_reuse.txt"));
}

TEST_F(DumpPassesTest, ShowsTheProgramAsTextThatCanBeRead) {
  const auto program = Run({});
  const std::string text = Dumped("01_early_update.txt");
  EXPECT_THAT(text, StartsWith("# early_update: "));
  EXPECT_TRUE(*ParseProgramText(text) == *program) << text;
}

TEST_F(DumpPassesTest, ShowsThePlanAsThePassLeftIt) {
  Run({});
  EXPECT_THAT(
      Dumped("02_dead_code.txt"),
      AllOf(StartsWith("# dead_code: "),
            HasSubstr("\n  {Out: [y#1 float32 [2]]} = tiny_scale(X: [x#0]) {factor = 2.0}\n"),
            Not(HasSubstr("tiny_copy"))));
}

TEST_F(DumpPassesTest, EndsWhereTheLimitIs) {
  Run({.pass_limit = 1});
  EXPECT_THAT(NamesIn(folder_ / "passes"),
              ElementsAre("01_early_update.txt", "02_dead_code.txt", "03_dead_code.txt"));
}

TEST_F(DumpPassesTest, MakesTheFolderEvenIfNoPassRuns) {
  Run({.pass_limit = 0});
  EXPECT_THAT(NamesIn(folder_ / "passes"), IsEmpty());
}

}  // namespace
}  // namespace skiff
