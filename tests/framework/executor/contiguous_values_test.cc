// Values that a plan wants contiguous: where they are stored, and that results don't change.
#include "framework/analysis/contiguous_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "framework/analysis/memory_report.h"
#include "framework/analysis/verify_plan.h"
#include "framework/base/error.h"
#include "framework/executor/device/device_link.h"
#include "framework/executor/lowering/lowering.h"
#include "framework/executor/run/prepared_plan.h"
#include "framework/executor/storage/storage.h"
#include "framework/ir/text.h"
#include "framework/plan/plan_text.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Gradients of 12, 20 and 160 bytes, written in another order than they are listed in, and two
// tensors of 160 bytes that are gone before the gradient of z is written.
constexpr const char* kStep = R"(program { block 0 {
  var x float32 [3]
  var y float32 [5]
  var z float32 [40]
  var t float32 [40]
  var s float32 [1]
  var v float32 [40]
  var r float32 [1]
  var gx float32 [3]
  var gy float32 [5]
  var gz float32 [40]
  param wx float32 [3] persistable
  param wy float32 [5] persistable
  param wz float32 [40] persistable
  {Out: [t]} = tiny_copy(X: [z])
  {Out: [s]} = tiny_sum(X: [t])
  {Out: [gy]} = tiny_scale(X: [y]) {factor = 2.0}
  {Out: [v]} = tiny_copy(X: [z])
  {Out: [r]} = tiny_sum(X: [v])
  {Out: [gz]} = tiny_scale(X: [z]) {factor = 3.0}
  {Out: [gx]} = tiny_scale(X: [x]) {factor = 4.0}
  {ParamOut: [wx]} = tiny_sgd(Param: [wx], Grad: [gx]) {op_role = 2}
  {ParamOut: [wy]} = tiny_sgd(Param: [wy], Grad: [gy]) {op_role = 2}
  {ParamOut: [wz]} = tiny_sgd(Param: [wz], Grad: [gz]) {op_role = 2}
} })";

Tensor Filled(int64_t elements, float value) {
  return Tensor::FromValues<float>({elements},
                                   std::vector<float>(static_cast<size_t>(elements), value));
}

class ContiguousValuesTest : public ::testing::Test {
 protected:
  ContiguousValuesTest() { tiny::RegisterTinyOps(registry_); }

  Plan Lower(const std::string& text, const std::vector<std::string>& fetches) {
    program_ = ParseProgramText(text);
    scope_.Set(kStepCounterName, Tensor::FromValues<int64_t>({1}, {0}));
    scope_.Set("wx", Filled(3, 1));
    scope_.Set("wy", Filled(5, 1));
    scope_.Set("wz", Filled(40, 1));
    const std::vector<std::pair<std::string, TensorMeta>> feeds = {
        {"x", {.shape = {3}}}, {"y", {.shape = {5}}}, {"z", {.shape = {40}}}};
    return LowerProgram({.registry = registry_, .scope = scope_, .place = Place::Cpu()}, *program_,
                        feeds, fetches);
  }

  Plan LowerStep() { return Lower(kStep, {"s", "r"}); }

  // The last value of a variable.
  static ValueId ValueOf(const Plan& plan, const std::string& name) {
    ValueId last;
    for (const ValueId value : plan.ids()) {
      if (plan[value].name == name) last = value;
    }
    EXPECT_TRUE(last) << "no value of " << name;
    return last;
  }

  static PlanValue& At(Plan& plan, const std::string& name) { return plan[ValueOf(plan, name)]; }

  static ContiguousValues List(const Plan& plan, const std::vector<std::string>& names,
                               int64_t alignment) {
    ContiguousValues list{.alignment_bytes = alignment};
    for (const std::string& name : names) list.values.push_back(ValueOf(plan, name));
    return list;
  }

  // Calls use(plan) for plans that want the gradients contiguous, without storage.
  template <typename Use>
  void ForEachPolicyAndAlignment(const Use& use) {
    for (const ReusePolicy policy : kReusePolicies) {
      for (const int64_t alignment : {4, 64}) {
        SCOPED_TRACE(StrCat(ReusePolicyName(policy), ", aligned to ", alignment));
        Plan plan = LowerStep();
        plan.reuse = policy;
        plan.contiguous = {List(plan, {"gx", "gy", "gz"}, alignment)};
        use(std::move(plan));
      }
    }
  }

  // What the plan computes: the fetches, then the parameters.
  std::vector<std::vector<float>> Run(Plan plan) {
    const std::vector<ValueId> feeds = plan.feeds;
    PreparedPlan prepared({.plan = std::move(plan)},
                          {.registry = &registry_,
                           .program = program_,
                           .scope = &scope_,
                           .arena = std::make_shared<SharedArena>(DeviceLink::Host()),
                           .statistics = std::make_shared<PreparationStatistics>(),
                           .poison_dead_memory = true});
    prepared.Allocate();
    EXPECT_THAT(VerifyPlan(prepared.plan()), IsEmpty());
    planned_bytes_ = prepared.plan().planned_bytes;
    prepared.BindFeeds({{"x", Filled(3, 5)}, {"y", Filled(5, 6)}, {"z", Filled(40, 7)}});
    std::vector<std::vector<float>> results;
    for (int step = 0; step < 2; ++step) prepared.Run();
    for (const Tensor& fetch : prepared.fetches()) results.push_back(fetch.ToVector<float>());
    for (const char* name : {"wx", "wy", "wz"}) {
      results.push_back(scope_.Get(name).ToVector<float>());
    }
    return results;
  }

  OpRegistry registry_;
  std::shared_ptr<Program> program_;
  Scope scope_;
  int64_t planned_bytes_ = 0;  // by the plan that ran last
};

TEST_F(ContiguousValuesTest, AreStoredOneAfterTheOther) {
  ForEachPolicyAndAlignment([&](Plan plan) {
    const int64_t alignment = plan.contiguous[0].alignment_bytes;
    PlanStorage(&plan);
    const int64_t base = At(plan, "gx").offset;
    EXPECT_EQ(base % 64, 0);
    EXPECT_EQ(At(plan, "gy").offset - base, alignment == 4 ? 12 : 64);
    EXPECT_EQ(At(plan, "gz").offset - base, alignment == 4 ? 32 : 128);
    EXPECT_THAT(VerifyPlan(plan), IsEmpty());
    for (const PlannedBuffer& block : ReportMemory(plan).blocks) {
      EXPECT_EQ(block.offset, At(plan, block.variable).offset) << block.variable;
    }
  });
}

TEST_F(ContiguousValuesTest, ComputeTheSameWithEveryPolicy) {
  ForEachPolicyAndAlignment([&](Plan plan) {
    const std::vector<float> sum = {280};
    EXPECT_THAT(Run(std::move(plan)),
                ElementsAre(sum, sum, std::vector<float>(3, -39), std::vector<float>(5, -23),
                            std::vector<float>(40, -41)));
  });
}

// t and v are stored where the gradient of z will be.
TEST_F(ContiguousValuesTest, GiveTheirSpaceToOthersUntilTheyAreWritten) {
  Plan plan = LowerStep();
  plan.reuse = ReusePolicy::kArena;
  plan.contiguous = {List(plan, {"gx", "gy", "gz"}, 4)};
  PlanStorage(&plan);
  EXPECT_EQ(plan.max_live_bytes, 192 + 8);
  EXPECT_LT(plan.planned_bytes, 192 + 160);
  const auto shares_with_gz = [&](const std::string& name) {
    return At(plan, name).offset < At(plan, "gz").offset + 160 &&
           At(plan, "gz").offset < At(plan, name).offset + 160;
  };
  EXPECT_TRUE(shares_with_gz("t"));
  EXPECT_TRUE(shares_with_gz("v"));
  // Whole buffers can't.
  plan.reuse = ReusePolicy::kBestFit;
  PlanStorage(&plan);
  EXPECT_GE(plan.planned_bytes, 192 + 160);
  EXPECT_FALSE(shares_with_gz("v"));
}

TEST_F(ContiguousValuesTest, LeaveOutWhatHasNoPlaceOfItsOwn) {
  Plan plan = LowerStep();
  plan.contiguous = {{.values = {plan.feeds[0], ValueOf(plan, "wx"), ValueOf(plan, "gx"),
                                 ValueOf(plan, "t"), ValueOf(plan, "gx"), ValueOf(plan, "gz")},
                      .alignment_bytes = 4},
                     {.values = {ValueOf(plan, "gz"), ValueOf(plan, "gy"), ValueOf(plan, "v")},
                      .alignment_bytes = 8}};
  plan.instructions.erase(plan.instructions.begin(), plan.instructions.begin() + 2);  // of t and s
  plan.fetches = {ValueOf(plan, "r")};
  const std::vector<std::vector<ContiguousSlice>> lists = ContiguousSlices(plan);
  ASSERT_EQ(lists.size(), 2u);
  ASSERT_EQ(lists[0].size(), 2u);
  EXPECT_EQ(lists[0][0].root, ValueOf(plan, "gx"));
  EXPECT_EQ(lists[0][1].root, ValueOf(plan, "gz"));
  EXPECT_EQ(lists[0][1].offset, 12);
  ASSERT_EQ(lists[1].size(), 2u);
  EXPECT_EQ(lists[1][0].root, ValueOf(plan, "gy"));
  EXPECT_EQ(lists[1][1].root, ValueOf(plan, "v"));
  EXPECT_EQ(lists[1][1].offset, 24);
  plan.reuse = ReusePolicy::kArena;
  EXPECT_THAT(Run(std::move(plan)),
              ElementsAre(std::vector<float>{280}, std::vector<float>(3, -39),
                          std::vector<float>(5, -23), std::vector<float>(40, -41)));
}

// gz is computed in place of v; the sum of v is read before.
TEST_F(ContiguousValuesTest, AValueOnAnothersStorageIsPlacedWithIt) {
  Plan plan = LowerStep();
  const ValueId v = ValueOf(plan, "v");
  At(plan, "gz").alias_of = v;
  plan.instructions[5].inputs[0] = v;
  plan.contiguous = {List(plan, {"gx", "gz", "v", "gy"}, 4)};
  const std::vector<ContiguousSlice> slices = ContiguousSlices(plan)[0];
  ASSERT_EQ(slices.size(), 3u);
  EXPECT_EQ(slices[1].value, ValueOf(plan, "gz"));
  EXPECT_EQ(slices[1].root, v);
  EXPECT_EQ(slices[2].offset, 12 + 160);
  plan.reuse = ReusePolicy::kArena;
  EXPECT_THAT(Run(plan), ElementsAre(std::vector<float>{280}, std::vector<float>{280},
                                     std::vector<float>(3, -39), std::vector<float>(5, -23),
                                     std::vector<float>(40, -41)));
  // Not on one of another size.
  At(plan, "gy").alias_of = ValueOf(plan, "t");
  EXPECT_EQ(ContiguousSlices(plan)[0].size(), 2u);
}

TEST_F(ContiguousValuesTest, SkippedVariablesShareWithNothingThereEither) {
  Plan plan = LowerStep();
  plan.contiguous = {List(plan, {"gx", "gy", "gz"}, 4)};
  At(plan, "gz").is_exclusive = true;
  plan.reuse = ReusePolicy::kArena;
  PlanStorage(&plan);
  EXPECT_THAT(VerifyPlan(plan), IsEmpty());
  EXPECT_GE(plan.planned_bytes, 160 + 160);
}

TEST_F(ContiguousValuesTest, MayHaveNoElements) {
  const std::string text = R"(program { block 0 {
    var x float32 [3]
    var y float32 [5]
    var z float32 [40]
    var a float32 [-1]
    var b float32 [3]
    var c float32 [-1]
    {Out: [a]} = tiny_fill() {shape = longs [0]}
    {Out: [b]} = tiny_copy(X: [x])
    {Out: [c]} = tiny_fill() {shape = longs [0]}
  } })";
  Plan plan = Lower(text, {"a", "b", "c"});
  plan.reuse = ReusePolicy::kArena;
  plan.contiguous = {List(plan, {"a", "b", "c"}, 64)};
  EXPECT_EQ(ContiguousSlices(plan)[0][2].offset, 64);
  const std::vector<std::vector<float>> results = Run(std::move(plan));
  EXPECT_THAT(results[0], IsEmpty());
  EXPECT_THAT(results[1], ElementsAre(5, 5, 5));
}

TEST_F(ContiguousValuesTest, RefuseWhatIsNoList) {
  Plan plan = LowerStep();
  const auto error_of = [&](const ContiguousValues& list) {
    plan.contiguous = {list};
    EXPECT_THAT(VerifyPlan(plan), ElementsAre(HasSubstr("contiguous values: ")));
    return InvalidArgumentText([&] { PlanStorage(&plan); });
  };
  EXPECT_EQ(error_of({.values = {ValueId(1000)}}),
            "contiguous value #1000: the plan has 16 values");
  EXPECT_EQ(error_of({.values = {ValueId()}}), "contiguous values: one of them is no value");
  EXPECT_THAT(error_of(List(plan, {"gx"}, 12)),
              HasSubstr("aligned to 12 bytes: expected a power of two"));
  EXPECT_THAT(error_of(List(plan, {"gx"}, 0)), HasSubstr("aligned to 0 bytes"));
  EXPECT_THAT(error_of(List(plan, {"gx"}, 2)),
              HasSubstr("of float32 aligned to 2 bytes: expected at least 4"));
}

// ---- random plans

// Programs of copies, sums of two and scalings of x, y and z.
class RandomPlan {
 public:
  explicit RandomPlan(uint32_t seed) : random_(seed) {
    for (size_t i = 0; i < 3; ++i) variables_[i] = {std::string(1, "xyz"[i])};
    const int ops = 4 + Below(30);
    std::string lines;
    for (int i = 0; i < ops; ++i) lines += Op(i);
    text_ = StrCat("program { block 0 {\nvar x float32 [3]\nvar y float32 [5]\n",
                   "var z float32 [40]\n", declarations_, lines, "} }");
  }

  const std::string& text() const { return text_; }
  std::vector<std::string> Fetches() { return {AnyOf(made_), AnyOf(made_)}; }
  std::vector<ContiguousValues> Lists(const Plan& plan) {
    std::vector<ContiguousValues> lists(static_cast<size_t>(1 + Below(3)));
    for (ContiguousValues& list : lists) {
      list.alignment_bytes = int64_t{4} << Below(7);
      for (int i = Below(10); i > 0; --i) {
        list.values.emplace_back(static_cast<size_t>(Below(static_cast<int>(plan.values.size()))));
      }
    }
    return lists;
  }

 private:
  int Below(int limit) { return static_cast<int>(random_() % static_cast<uint32_t>(limit)); }

  const std::string& AnyOf(const std::vector<std::string>& names) {
    return names[static_cast<size_t>(Below(static_cast<int>(names.size())))];
  }

  std::string Op(int i) {
    constexpr int kExtents[] = {3, 5, 40};
    const int kind = Below(3);
    std::vector<std::string>& of_size = variables_[kind];
    const std::string out = StrCat("v", i);
    declarations_ += StrCat("var ", out, " float32 [", kExtents[kind], "]\n");
    const std::string& in = AnyOf(of_size);
    std::string line = StrCat("{Out: [", out, "]} = tiny_workspace(X: [", in, "])\n");
    if (Below(2) == 0) {
      line = StrCat("{Out: [", out, "]} = tiny_add(X: [", in, "], Y: [", AnyOf(of_size), "])\n");
    }
    of_size.push_back(out);
    made_.push_back(out);
    return line;
  }

  std::mt19937 random_;
  std::vector<std::string> variables_[3];  // by extent
  std::vector<std::string> made_;
  std::string declarations_;
  std::string text_;
};

TEST_F(ContiguousValuesTest, DontChangeResultsOfRandomPlans) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    RandomPlan random(seed);
    const Plan plan = Lower(random.text(), random.Fetches());
    const std::vector<std::vector<float>> expected = Run(plan);
    for (const ReusePolicy policy : kReusePolicies) {
      SCOPED_TRACE(StrCat("seed ", seed, ", ", ReusePolicyName(policy)));
      Plan contiguous = plan;
      contiguous.reuse = policy;
      contiguous.contiguous = random.Lists(plan);
      ASSERT_EQ(Run(contiguous), expected) << PrintPlan(contiguous);
    }
  }
}

}  // namespace
}  // namespace skiff
