#include "framework/tuning/kernel_timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include "framework/base/error.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// An op "mix" of inputs X and W, W perhaps absent, and an integer input Ids; outputs Out and Copy.
OpDef MixDef() {
  OpDef def;
  def.type = "mix";
  def.doc = "A test's op.";
  def.inputs = {{.name = "X", .doc = ""},
                {.name = "W", .doc = "", .dispensable = true},
                {.name = "Ids", .doc = ""}};
  def.outputs = {{.name = "Out", .doc = ""}, {.name = "Copy", .doc = "", .dispensable = true}};
  def.infer = [](OpContext&) {};
  def.no_gradient_reason = "tests need none";
  return def;
}

class KernelTimingTest : public ::testing::Test {
 protected:
  using Run = std::function<void(const KernelContext&)>;

  KernelTimingTest() : def_(MixDef()), op_("mix") {
    op_.SetInput("X", {"x"}).SetInput("W", {"w"}).SetInput("Ids", {"ids"});
    op_.SetOutput("Out", {"out"});
  }

  std::vector<double> Time(const std::vector<KernelDef>& kernels, bool w_is_constant = true) {
    const TensorMeta image{
        .shape = {2, 5, 3, 3}, .dtype = DType::kFloat32, .layout = Layout::Blocked(8)};
    const TensorMeta weights{.shape = {7}, .dtype = DType::kFloat64, .layout = {}};
    const TensorMeta ids{.shape = {4}, .dtype = DType::kInt64, .layout = {}};
    const OpContext context(op_, def_, {image, weights, ids},
                            std::vector<TensorMeta>(OutputOrder(def_, op_).size(), image));
    std::vector<const KernelDef*> candidates;
    for (const KernelDef& kernel : kernels) candidates.push_back(&kernel);
    return TimeKernels({.context = context, .is_constant = {false, w_is_constant, false}},
                       candidates);
  }

  static KernelDef Simple(const Run& run) {
    return {.prepare = [run](PrepareContext&) { return MakeKernel(run); }, .accepts = {}};
  }
  // A form of W, whose refreshes it counts.
  static KernelDef Deriving(int* refreshes) {
    return {.prepare =
                [refreshes](PrepareContext& context) {
                  const int form = context.RequestDerivedForm(
                      {.inputs = {1},
                       .bytes = 8,
                       .refresh = [refreshes](const KernelContext& run, void* out) {
                         ++*refreshes;
                         std::memcpy(out, run.input(1).raw_data(), 8);
                       }});
                  return MakeKernel([form](const KernelContext& run) {
                    EXPECT_EQ(std::memcmp(run.derived(form), run.input(1).raw_data(), 8), 0);
                  });
                },
            .accepts = {}};
  }

  OpDef def_;
  Op op_;
};

TEST_F(KernelTimingTest, RunsTheCandidatesInTurn) {
  std::string runs;
  const auto times = Time({Simple([&](const KernelContext&) { runs += 'a'; }),
                           Simple([&](const KernelContext&) { runs += 'b'; })});
  EXPECT_THAT(times, ElementsAre(testing::Ge(0), testing::Ge(0)));
  ASSERT_GE(runs.size(), 4u);
  EXPECT_LE(runs.size(), 2u + 2 * 20);
  for (size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(runs[i], i % 2 == 0 ? 'a' : 'b');
}

TEST_F(KernelTimingTest, RunsSlowCandidatesTwice) {
  constexpr auto kLong = std::chrono::milliseconds(200);
  int runs = 0;
  const auto times = Time({Simple([&](const KernelContext&) {
                             ++runs;
                             std::this_thread::sleep_for(kLong);
                           }),
                           Simple([](const KernelContext&) {})});
  EXPECT_EQ(runs, 2);
  EXPECT_GE(times[0], 0.2);
  EXPECT_LT(times[1], times[0]);
}

TEST_F(KernelTimingTest, MakesADerivedFormForEachRunUnlessItsInputIsConstant) {
  int refreshes = 0;
  Time({Deriving(&refreshes)}, true);
  EXPECT_EQ(refreshes, 1);
  refreshes = 0;
  int runs = 0;
  KernelDef kernel = Deriving(&refreshes);
  kernel.prepare = [&, prepare = kernel.prepare](PrepareContext& context) {
    std::shared_ptr<Kernel> derived = prepare(context);
    return MakeKernel([&, derived](const KernelContext& run) {
      ++runs;
      EXPECT_EQ(refreshes, runs + 1);  // one when it was prepared
      derived->Run(run);
    });
  };
  Time({kernel}, false);
  EXPECT_GT(runs, 1);
}

TEST_F(KernelTimingTest, GivesNumbersThatFitAsDivisorsAndZerosAsIds) {
  Time({Simple([](const KernelContext& run) {
    std::set<double> weights;
    for (double weight : run.input(1).values<double>()) {
      EXPECT_GE(weight, 0.5);
      EXPECT_LT(weight, 1.5);
      weights.insert(weight);
    }
    EXPECT_GT(weights.size(), 1u);
    EXPECT_THAT(run.input(2).ToVector<int64_t>(), Each(0));
  })});
}

TEST_F(KernelTimingTest, PadsABlockedTensorWithZeros) {
  Time({Simple([](const KernelContext& run) {
    const Tensor& image = run.input(0);
    ASSERT_EQ(image.layout(), Layout::Blocked(8));
    const float* data = image.data<float>();
    for (int64_t i = 0; i < int64_t{2} * 9 * 8; ++i) EXPECT_EQ(data[i] == 0, i % 8 >= 5) << i;
    EXPECT_EQ(run.output(0).layout(), Layout::Blocked(8));
  })});
}

TEST_F(KernelTimingTest, LeavesOutWhatIsAbsent) {
  op_.SetInput("W", {"@EMPTY@"}).SetOutput("Copy", {"@EMPTY@"});
  Time({Simple([](const KernelContext& run) {
    EXPECT_EQ(run.inputs[1], nullptr);
    ASSERT_EQ(run.outputs.size(), 2u);
    EXPECT_NE(run.outputs[0], nullptr);
    EXPECT_EQ(run.outputs[1], nullptr);
  })});
}

TEST_F(KernelTimingTest, GivesWorkspaceOfItsOwn) {
  Time({{.prepare =
             [](PrepareContext& context) {
               const int a = context.RequestWorkspace(1000);
               const int b = context.RequestWorkspace(2000);
               return MakeKernel([a, b](const KernelContext& run) {
                 std::memset(run.workspace(a), 1, 1000);
                 std::memset(run.workspace(b), 2, 2000);
                 EXPECT_EQ(static_cast<char*>(run.workspace(a))[999], 1);
                 EXPECT_EQ(reinterpret_cast<uintptr_t>(run.workspace(b)) % kBufferAlignment, 0u);
               });
             },
         .accepts = {}}});
}

TEST_F(KernelTimingTest, PassesErrorsOn) {
  EXPECT_THROW(
      Time({Simple([](const KernelContext&) { Throw(ErrorCode::kUnimplemented, "cannot"); })}),
      Error);
}

}  // namespace
}  // namespace skiff
