// Changed programs compute or throw an Error, and nothing else: they don't leave their memory,
// don't hang, and give the same between guards as with reuse (mutant_check.h).
//
//   bazel run --config=opt //tests/fuzz:program_fuzz_test -- --mutants=1000000 --jobs=8
//   bazel run --config=opt //tests/fuzz:program_fuzz_test -- --mutant=123
//
// The second command prints one mutant, and, if it fails, what is left of it after all ops and
// fetches are gone that the failure doesn't need. docs/fuzzing.md
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "framework/op/registry.h"
#include "operators/tensor/tensor_ops.h"
#include "tests/fuzz/fuzz_main.h"
#include "tests/harness/memory_check.h"

namespace skiff::fuzz {
namespace {

const std::vector<Seed>& Seeds() {
  static const std::vector<Seed>& seeds = *[] {
    std::vector<std::string> files;
    for (const char* file :
         {"paddle_beam_search/main.pb", "paddle_gru/main.pb", "paddle_lstm/main.pb",
          "paddle_nested_cond/main.pb", "paddle_while/main.pb", "paddle_encoder/main.pb",
          "paddle_recurrent/main.pb", "paddle_recurrent/startup.pb",
          "paddle_gradient_merge/main.pb", "paddle_instance_norm/main.pb", "paddle_einsum/main.pb",
          "old_text_cnn/fluid_1_6.pb", "old_text_cnn/fluid_2_4.pb"}) {
      files.push_back(StrCat("tests/tools/run_program/", file));
    }
    return new std::vector<Seed>(SeedPrograms(files));
  }();
  return seeds;
}

harness::Workload AsWorkload(const Mutant& mutant) {
  return {.name = mutant.seed->name,
          .initial = mutant.seed->variables,
          .startup = nullptr,
          .programs = {mutant.program},
          .runs = {{.program = 0, .feeds = mutant.feeds, .fetches = mutant.fetches}}};
}

Mutant Smaller(Mutant mutant, const harness::Workload& workload) {
  mutant.program = workload.programs[0]->Clone();
  mutant.fetches = workload.runs.empty() ? FetchList() : workload.runs[0].fetches;
  return mutant;
}

// Prints a mutant, and what is left of it if it fails.
void Explain(uint64_t number) {
  const Mutant mutant = MakeMutant(Seeds(), number);
  const std::string failure = FailureOf(mutant);
  if (failure.empty()) {
    std::cout << MutantText(mutant);
    return;
  }
  const harness::Workload small =
      harness::Shrink(AsWorkload(mutant), [&](const harness::Workload& workload) {
        return !workload.runs.empty() &&
               KindOf(FailureOf(Smaller(mutant, workload))) == KindOf(failure);
      });
  const Mutant least = Smaller(mutant, small);
  std::cout << "before: " << failure << "\nshrunk: " << FailureOf(least) << "\n"
            << MutantText(least);
}

Mutant Unchanged(const Seed& seed) {
  Mutant mutant;
  mutant.seed = &seed;
  mutant.program = seed.program->Clone();
  mutant.feeds = seed.feeds;
  mutant.fetches = seed.fetches;
  return mutant;
}

void PrintKinds(const std::string& what, const FuzzResult::Kinds& kinds) {
  uint64_t all = 0;
  for (const auto& [kind, found] : kinds) {
    all += found.second;
    std::cout << found.second << " " << what << ", such as --mutant=" << found.first << ": " << kind
              << "\n";
  }
  std::cout << all << " " << what << "\n";
}

// An op with faults, each of which it has if `fault` says so.
void AddFaultyOp(OpRegistry* registry) {
  OpDef def;
  def.type = "faulty";
  def.doc = "A test's op.";
  def.inputs = {{.name = "X", .doc = "an operand"}};
  def.outputs = {{.name = "Out", .doc = "the result"}};
  def.attrs = {{.name = "fault", .type = AttrType::kString, .doc = "what is wrong"}};
  def.infer = [](OpContext& context) {
    const auto& fault = context.Attr<std::string>("fault");
    if (fault == "plans with 32 MiB of buffers") Tensor({int64_t{8} << 20}, DType::kFloat32);
    if (fault == "plans with 1 GiB") std::string(size_t{1} << 30, ' ');
    context.SetOutputLike("Out", "X");
  };
  def.no_gradient_reason = "the test needs none";
  registry->Add(std::move(def));
  registry->AddCpuKernels<float>("faulty", []<typename T>(PrepareContext& context) {
    const auto fault = context.Attr<std::string>("fault");
    SKIFF_ENFORCE(fault != "refuses to be prepared", kInvalidArgument, "wrong");
    return MakeKernel([fault](const KernelContext& run) {
      static int runs = 0;
      ++runs;
      const std::span<const T> x = run.input(0).values<T>();
      T* out = run.output(0).data<T>();
      if (fault == "leaves Out as it is") return;
      std::ranges::copy(x, out);
      if (fault == "writes beyond the end") out[x.size()] = 1;
      if (fault == "exits") std::_Exit(0);
      if (fault == "throws another exception") throw std::logic_error("a mistake");
      if (fault == "throws no exception") throw 1;
      if (fault == "throws, but not again") {
        SKIFF_ENFORCE(runs % 2 == 0, kInvalidArgument, "odd");
      }
      // A mutant runs twice between guards, then twice with reuse.
      if (fault == "runs out of memory with reuse") {
        SKIFF_ENFORCE(runs % 4 != 3, kResourceExhausted, "no memory");
      }
      SKIFF_ENFORCE(fault != "writes, and throws", kInvalidArgument, "wrong");
    });
  });
}

class PlantedFault : public ::testing::Test {
 protected:
  PlantedFault() {
    RegisterTensorOps(registry_);
    AddFaultyOp(&registry_);
  }

  // y, of the faulty op, is in the scope, or the element of an array a that has n of them.
  FuzzResult Run(const std::string& fault, const FuzzOptions& options,
                 const FetchList& fetches = {"y"}, bool is_kept = false) {
    const std::string text = StrCat(R"(program { block 0 {
      var x float32 [3]
      var i int64 [1]
      var n int64 [1]
      var a lod_tensor_array float32 [3]
      var y float32 [3] )",
                                    is_kept ? "persistable" : "", R"(
      {Out: [y]} = faulty(X: [x]) {fault = ")",
                                    fault, "\"}", is_kept ? "" : R"(
      {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
      {Out: [a]} = write_to_array(X: [y], I: [i])
      {Out: [n]} = lod_array_length(X: [a]))",
                                    "} }");
    const Tensor ones = Tensor::FromValues<float>({3}, {1, 1, 1});
    const std::vector<Seed> seeds = {{.name = fault,
                                      .program = ParseProgramText(text),
                                      .variables = {{"y", ones}},
                                      .feeds = {{"x", Tensor::FromValues<float>({3}, {4, 5, 6})}},
                                      .fetches = fetches}};
    return RunMutants(
        [&](uint64_t number) { return CheckMutant(MakeMutant(seeds, number), registry_); },
        options);
  }

  OpRegistry registry_;
};

TEST_F(PlantedFault, IsReported) {
  struct Fault {
    const char* name;
    FetchList fetches;
    const char* what;
    bool is_kept = false;
  };
  const Fault faults[] = {
      {"writes beyond the end", {"y"}, "ended "},
      {"exits", {"y"}, "ended with status 0"},
      {"throws another exception", {"y"}, "threw: a mistake"},
      {"throws no exception", {"y"}, "ended by Aborted"},
      {"leaves Out as it is", {"y"}, "run 0, fetch y: values: "},
      {"leaves Out as it is", {"n"}, "run 0, element 0 of a: values: "},
      {"throws, but not again", {"y"}, "throws in run 0 only: "},
      {"runs out of memory with reuse", {"y"}, "run 0 throws with reuse only: "},
      {"writes, and throws", {"y"}, "in the scope, y: values: ", /*is_kept=*/true},
#ifndef __SANITIZE_ADDRESS__
      {"plans with 1 GiB", {"y"}, "threw: faulty (block 0, op #0): out of memory on the host"},
#endif
      {"plans with 32 MiB of buffers", {"y"}, "threw: faulty (block 0, op #0)"}};
  for (const auto& [name, fetches, what, is_kept] : faults) {
    SCOPED_TRACE(StrCat(name, ", ", fetches[0]));
    const FuzzResult result = Run(name, {.count = 20, .jobs = 2}, fetches, is_kept);
    EXPECT_EQ(result.tried, 20u);
    const auto is_found = [&](const FuzzFailure& failure) {
      return failure.what.find(what) != std::string::npos;
    };
    EXPECT_TRUE(std::ranges::any_of(result.failures, is_found));
  }
  const FuzzResult result = Run("none", {.count = 20, .jobs = 2});
  EXPECT_EQ(result.tried, 20u);
  for (const FuzzFailure& failure : result.failures) ADD_FAILURE() << failure.what;
}

TEST_F(PlantedFault, IsUnknownToVerifyUnlessARaggedFeedMayBeTheReason) {
  const auto problem_of = [&](const std::string& x) {
    const std::string text = StrCat(R"(program { block 0 {
      var x float32 [3]
      var ragged float32 [-1] lod=1
      var copy float32 [-1] lod=1
      var y float32 [-1]
      {Out: [copy]} = assign(X: [ragged])
      {Out: [y]} = faulty(X: [)",
                                    x, R"(]) {fault = "refuses to be prepared"} } })");
    Tensor ragged = Tensor::FromValues<float>({3}, {1, 2, 3});
    ragged.set_lod({{0, 1, 3}});
    const Seed seed{.name = x,
                    .program = ParseProgramText(text),
                    .variables = {},
                    .feeds = {{"x", Tensor::FromValues<float>({3}, {1, 2, 3})}, {"ragged", ragged}},
                    .fetches = {"y"}};
    return CheckMutant(Unchanged(seed), registry_).problem;
  };
  EXPECT_EQ(problem_of("x"), "verified, but refused: faulty (block 0, op #1): wrong");
  EXPECT_EQ(problem_of("copy"), "");
}

TEST_F(PlantedFault, EndsTheSearchIfItIsMet50Times) {
  for (const char* fault : {"writes beyond the end", "throws another exception"}) {
    const FuzzResult result = Run(fault, {.count = 1000, .jobs = 3});
    EXPECT_GE(result.failures.size(), kMostFailures);
    EXPECT_LT(result.failures.size(), kMostFailures + 3);
    EXPECT_LT(result.tried, 200u);
  }
}

TEST_F(PlantedFault, IsLookedForByAtLeastOneProcess) {
  EXPECT_THROW(Run("none", {.count = 20, .jobs = 0}), Error);
  EXPECT_THROW(Run("none", {.count = 20, .jobs = kMostJobs + 1}), Error);
  EXPECT_THROW(Run("none", {.count = 0, .jobs = 1}), Error);
}

TEST(ProgramFuzz, TheFirstRefusalCounts) {
  const Seed seed{.name = "refused",
                  .program = ParseProgramText(
                      "program { block 0 { var x float32 [3] {Out: [x]} = no_such_op() } }"),
                  .variables = {},
                  .feeds = {},
                  .fetches = {}};
  const Mutant mutant = Unchanged(seed);
  EXPECT_EQ(CheckMutant(mutant).end, MutantReport::End::kVerify);
  // Which files can't have.
  mutant.program->root()->GetVar("x")->attrs["a"] = 1.5f;
  EXPECT_EQ(CheckMutant(mutant).end, MutantReport::End::kCodec);
}

TEST(ProgramFuzz, AMutantDependsOnItsNumber) {
  for (const uint64_t number : {0, 17, 1'000'000}) {
    EXPECT_EQ(MutantText(MakeMutant(Seeds(), number)), MutantText(MakeMutant(Seeds(), number)));
  }
}

TEST(ProgramFuzz, SeedsComputeTheSameBetweenGuards) {
  for (const Seed& seed : Seeds()) {
    const MutantReport report = CheckMutant(Unchanged(seed));
    EXPECT_EQ(report.end, MutantReport::End::kComputed) << seed.name << ": " << report.unverified;
    EXPECT_EQ(report.problem, "") << seed.name;
  }
}

TEST(ProgramFuzz, MutantsComputeOrThrow) {
  if (const auto mutant = OnlyMutant()) return Explain(*mutant);
  const FuzzResult result = RunMutantsOfFlags(
      [](uint64_t number) { return CheckMutant(MakeMutant(Seeds(), number)); }, "the codec");
  PrintKinds("verified, but refused", result.unverified);
  PrintKinds("computed, though verify refuses", result.only_verify);
}

}  // namespace
}  // namespace skiff::fuzz
