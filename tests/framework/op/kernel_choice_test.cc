#include "framework/op/kernel_choice.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace skiff {
namespace {

constexpr int64_t kMebibyte = int64_t{1} << 20;
// Of an op with an input and an output of this size, modest are 2 * 2 + 4 MiB, on a device
// 5 * 2 + 4.
constexpr int64_t kTensorBytes = kMebibyte;
constexpr int64_t kModest = 8 * kMebibyte;
constexpr int64_t kModestOnDevice = 14 * kMebibyte;

// An op X -> Out with the kernels that a test gives it.
class KernelChoiceTest : public ::testing::Test {
 protected:
  KernelChoiceTest() {
    OpDef def;
    def.type = "copy";
    def.doc = "Out = X.";
    def.inputs = {{.name = "X", .doc = "input"}};
    def.outputs = {{.name = "Out", .doc = "output"}};
    def.infer = [](OpContext& context) { context.SetOutputLike("Out", "X"); };
    def.no_gradient_reason = "not needed here";
    registry_.Add(std::move(def));
    op_.SetInput("X", {"x"}).SetOutput("Out", {"out"});
  }

  void Add(const std::string& name, int priority, int64_t scratch_bytes, bool is_worthwhile = true,
           bool is_reference = false, PlaceKind place = PlaceKind::kCpu) {
    registry_.AddKernel(
        "copy", {.name = name,
                 .place = place,
                 .prepare =
                     [scratch_bytes](PrepareContext& context) {
                       context.RequestWorkspace(scratch_bytes / 2);
                       context.RequestDerivedForm(
                           {.inputs = {0}, .bytes = scratch_bytes / 2, .refresh = {}});
                       return MakeKernel([](const KernelContext&) {});
                     },
                 .accepts = {},
                 .is_worthwhile = [is_worthwhile](const OpContext&) { return is_worthwhile; },
                 .priority = priority,
                 .is_reference = is_reference});
  }

  std::string Choice(Place place = Place::Cpu()) const {
    const TensorMeta meta{.shape = {kTensorBytes / 4}, .dtype = DType::kFloat32};
    const OpContext context(op_, registry_.Get("copy"), {meta}, {meta}, place);
    return KernelByRule(registry_, context).name;
  }

  OpRegistry registry_;
  Op op_{"copy"};
};

TEST_F(KernelChoiceTest, TheHighestPriorityRunsWithModestScratchMemory) {
  Add("low", 1, 0);
  Add("high", 2, kModest);
  EXPECT_EQ(Choice(), "high");
}

TEST_F(KernelChoiceTest, MoreScratchMemoryGivesWay) {
  Add("lowest", 1, 0);
  Add("low", 2, kModest);
  Add("heavy", 3, kModest + 2);
  Add("high", 4, kModest + 2);
  EXPECT_EQ(Choice(), "low");
}

TEST_F(KernelChoiceTest, MoreIsModestOnADevice) {
  const auto add = [this](const std::string& name, int priority, int64_t scratch_bytes) {
    Add(name, priority, scratch_bytes, /*is_worthwhile=*/true, /*is_reference=*/false,
        PlaceKind::kCuda);
  };
  add("low", 1, 0);
  add("high", 2, kModestOnDevice);
  EXPECT_EQ(Choice(Place::Cuda()), "high");
  add("heavy", 3, kModestOnDevice + 2);
  EXPECT_EQ(Choice(Place::Cuda()), "high");
}

TEST_F(KernelChoiceTest, OneThatPaysComesBeforeOneThatDoesNot) {
  Add("slow", 9, 0, /*is_worthwhile=*/false);
  Add("low", 1, 0);
  Add("high", 2, kModest + 2);
  EXPECT_EQ(Choice(), "low");
}

TEST_F(KernelChoiceTest, ASlowKernelIsBetterThanTooMuchScratchMemory) {
  Add("slow", 9, 0, /*is_worthwhile=*/false);
  Add("high", 2, kModest + 2);
  EXPECT_EQ(Choice(), "slow");
}

TEST_F(KernelChoiceTest, AReferenceIsNot) {
  Add("plain", 0, 0, /*is_worthwhile=*/true, /*is_reference=*/true);
  Add("high", 2, kModest + 2);
  EXPECT_EQ(Choice(), "high");
}

TEST_F(KernelChoiceTest, TheHighestPriorityRunsIfAllTakeTooMuch) {
  Add("low", 1, kModest + 2);
  Add("high", 2, 10 * kModest);
  Add("slow", 3, kModest + 2, /*is_worthwhile=*/false);
  EXPECT_EQ(Choice(), "high");
}

TEST_F(KernelChoiceTest, NothingIsPreparedWithoutAChoice) {
  registry_.AddKernel("copy", {.name = "only", .prepare = [](PrepareContext&) {
                                 ADD_FAILURE() << "prepared";
                                 return std::unique_ptr<Kernel>();
                               }});
  EXPECT_EQ(Choice(), "only");
}

}  // namespace
}  // namespace skiff
