// Collective ops beside the others: in a thread of the CPU, or on a second stream of a device. Dead
// memory is NaN meanwhile, and the collective ops end late, or the device's streams run when a seed
// says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/analysis/stream_waits.h"
#include "framework/analysis/verify_plan.h"
#include "framework/base/error.h"
#include "framework/comm/threads_communicator.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/plan/plan_text.h"
#include "framework/transpiler/pass.h"
#include "tests/framework/executor/echo_communicator.h"
#include "tests/framework/executor/tiny_ops.h"
#include "tests/harness/emulated_device.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using harness::EmulatedPlace;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Tensor Row(const std::vector<float>& values) {
  return Tensor::FromValues<float>({static_cast<int64_t>(values.size())}, values);
}

CompileOptions OptionsOf(Overlap overlap, ReusePolicy policy = ReusePolicy::kArena) {
  return {
      .memory = {.policy = policy, .poison_dead_memory = true},
      // The passes for ranks would make another program.
      .passes = {.skip = {"data_parallel", "bucket_gradients"}},
      .data_parallel = {.communicator = std::make_shared<EchoCommunicator>(),
                        .device_communicator = std::make_shared<EchoCommunicator>(EmulatedPlace()),
                        .overlap = overlap}};
}

// Collective ops pause for drawn times while it lives.
class DrawnPauses {
 public:
  explicit DrawnPauses(uint64_t seed) : draws_(seed) {
    tiny::SetOnExchange([this](const KernelContext&) {
      std::this_thread::sleep_for(std::chrono::microseconds(draws_() % 4 * 60));
    });
  }
  ~DrawnPauses() { tiny::SetOnExchange({}); }

 private:
  std::mt19937_64 draws_;  // one op at a time runs
};

// ---- random programs

constexpr int kElements = 16;
constexpr int kTemporaries = 8;
constexpr int kVariables = 3;

// A program of drawn ops on few variables, which are written again and again.
class DrawnProgram {
 public:
  explicit DrawnProgram(uint64_t seed) : draws_(seed) {
    text_ = "program { block 0 {\n  var x float32 [16]\n";
    for (int i = 0; i < kTemporaries; ++i) text_ += StrCat("  var t", i, " float32 [16]\n");
    for (int i = 0; i < kVariables; ++i) {
      text_ += StrCat("  param p", i, " float32 [16] persistable\n");
      known_.push_back(StrCat("p", i));
    }
    known_.emplace_back("x");
    const size_t ops = 10 + Draw(40);
    for (size_t i = 0; i < ops; ++i) AddOp();
    text_ += "} }";
    for (const std::string& name : known_) {
      if (name[0] == 't' && Draw(3) == 0) fetches_.push_back(name);
    }
  }

  std::unique_ptr<Program> Parsed() const { return ParseProgramText(text_); }
  const std::string& text() const { return text_; }
  const FetchList& fetches() const { return fetches_; }

 private:
  size_t Draw(size_t count) { return draws_() % count; }
  std::string Known() { return known_[Draw(known_.size())]; }
  // A variable that may be written.
  std::string Target() {
    if (Draw(5) == 0) return StrCat("p", Draw(kVariables));
    return StrCat("t", Draw(kTemporaries));
  }

  void AddOp() {
    const std::string in = Known();
    const std::string out = in != "x" && Draw(3) == 0 ? in : Target();
    const char* factors[] = {"1.0", "0.5", "-1.0"};
    const std::string factor = StrCat(" {factor = ", factors[Draw(3)], "}");
    const auto unary = [&](const char* type, const std::string& attributes = "") {
      return StrCat("{Out: [", out, "]} = ", type, "(X: [", in, "])", attributes);
    };
    std::string op;
    switch (Draw(11)) {
      case 0:
      case 1:
      case 2:
        op = unary("tiny_exchange", factor);
        break;
      case 3:
        op = unary("tiny_exchange_copy", factor);
        break;
      case 4:
        op = unary("tiny_scale", factor);
        break;
      case 5:
        op = unary("tiny_copy");
        break;
      case 6:
        op = unary("tiny_workspace");
        break;
      case 7:
        op = unary("tiny_ones_like");
        break;
      case 8:
        op = unary("tiny_check", " {least = -1e30}");
        break;
      case 9:
        op = StrCat("{Out: [", out, "]} = tiny_add(X: [", in, "], Y: [", Known(), "])");
        break;
      default: {
        const std::string variable = StrCat("p", Draw(kVariables));
        op = StrCat("{ParamOut: [", variable, "]} = tiny_sgd(Param: [", variable, "], Grad: [", in,
                    "])", Draw(2) == 0 ? " {op_role = 2}" : "");
      }
    }
    text_ += "  " + op + "\n";
    const bool writes_out = op.find("ParamOut") == std::string::npos;
    if (writes_out && std::ranges::count(known_, out) == 0) known_.push_back(out);
  }

  std::mt19937_64 draws_;
  std::string text_;
  std::vector<std::string> known_;
  FetchList fetches_;
};

// The bits of what a program leaves: fetches of each run, and the variables at the end.
using Bits = std::vector<std::vector<uint32_t>>;

std::vector<uint32_t> BitsOf(const Tensor& tensor) {
  const Tensor on_cpu = CopyToCpu(tensor);
  std::vector<uint32_t> bits(static_cast<size_t>(on_cpu.element_count()));
  std::memcpy(bits.data(), on_cpu.raw_data(), bits.size() * sizeof(uint32_t));
  return bits;
}

// Three steps; the third is the first that may run graphs.
Bits Trained(Executor* executor, const DrawnProgram& drawn, const CompileOptions& options,
             std::string* plan = nullptr, int64_t* graphs = nullptr) {
  for (int i = 0; i < kVariables; ++i) {
    executor->scope().Assign(StrCat("p", i), Row(std::vector<float>(kElements, 1.0f + i)));
  }
  CompiledProgram program = executor->Compile(*drawn.Parsed(), options);
  Tensor x = Row(std::vector<float>(kElements, 0));
  BoundProgram bound = program.Bind({{"x", x}}, drawn.fetches());
  if (plan != nullptr) *plan = PrintPlan(bound.plan());
  Bits bits;
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < kElements; ++i) x.data<float>()[i] = 0.25f * (i - 3) + step;
    bound.Step();
    for (size_t i = 0; i < drawn.fetches().size(); ++i) bits.push_back(BitsOf(bound.fetch(i)));
  }
  if (graphs != nullptr) *graphs += bound.statistics().graphs;
  for (int i = 0; i < kVariables; ++i) {
    bits.push_back(BitsOf(executor->scope().Get(StrCat("p", i))));
  }
  return bits;
}

class Overlapped : public ::testing::Test {
 protected:
  Overlapped() { tiny::RegisterTinyOps(registry_); }

  Bits OnCpu(const DrawnProgram& drawn, const CompileOptions& options,
             std::string* plan = nullptr) const {
    Executor executor(Place::Cpu(), nullptr, &registry_);
    return Trained(&executor, drawn, options, plan);
  }

  OpRegistry registry_;
};

constexpr ReusePolicy kPolicies[] = {ReusePolicy::kNone, ReusePolicy::kEqual, ReusePolicy::kBestFit,
                                     ReusePolicy::kArena};

TEST_F(Overlapped, DrawnProgramsHaveTheBitsOfOneThread) {
  int waits = 0;
  int in_place = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const DrawnProgram drawn(seed);
    SCOPED_TRACE(StrCat("seed ", seed, "\n", drawn.text()));
    const Bits expected = OnCpu(drawn, OptionsOf(Overlap::kOff, ReusePolicy::kNone));
    const DrawnPauses pauses(seed);
    for (const ReusePolicy policy : kPolicies) {
      std::string plan;
      const Bits found = OnCpu(drawn, OptionsOf(Overlap::kOn, policy), &plan);
      ASSERT_EQ(found, expected) << plan;
      if (plan.find(" wait(c") != std::string::npos) ++waits;
      if (plan.find("tiny_exchange(") != std::string::npos &&
          plan.find(" @t") != std::string::npos) {
        ++in_place;
      }
    }
  }
  EXPECT_THAT(waits, Gt(150));
  EXPECT_THAT(in_place, Gt(30));
}

TEST_F(Overlapped, DrawnProgramsOnADeviceHaveTheBitsOfTheCpu) {
  const auto emulated = harness::RegistryWithEmulation(registry_);
  int64_t graphs = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const DrawnProgram drawn(seed);
    SCOPED_TRACE(StrCat("seed ", seed, "\n", drawn.text()));
    const Bits expected = OnCpu(drawn, OptionsOf(Overlap::kOff, ReusePolicy::kNone));
    harness::DrawWhenStreamsRun(seed);
    for (const ReusePolicy policy : kPolicies) {
      Executor executor(EmulatedPlace(), nullptr, emulated.get());
      std::string plan;
      const Bits found =
          Trained(&executor, drawn, OptionsOf(Overlap::kAuto, policy), &plan, &graphs);
      ASSERT_EQ(found, expected) << plan;
    }
    harness::DrawWhenStreamsRun(std::nullopt);
  }
  EXPECT_THAT(graphs, Gt(50)) << "of instructions between collectives and waits";
}

// Leaves out a wait of the plan.
class ForgetWait final : public PlanPass {
 public:
  explicit ForgetWait(size_t number) : number_(number) {}
  std::string_view name() const override { return "forget_wait"; }
  PassReport Apply(const PassContext&, Plan* plan) const override {
    size_t next = 0;
    for (Instruction& instruction : plan->instructions) {
      if (instruction.waits_for >= 0 && next++ == number_) instruction.waits_for = -1;
    }
    return {};
  }

 private:
  const size_t number_;
};

// What is left out may follow from nothing else: each wait is needed.
TEST_F(Overlapped, APlanThatLacksAnyOfItsWaitsIsRefused) {
  int refused = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const DrawnProgram drawn(seed);
    std::string text;
    OnCpu(drawn, OptionsOf(Overlap::kOn), &text);
    const Plan plan = ParsePlan(registry_, text);
    EXPECT_THAT(VerifyPlan(plan), IsEmpty());
    const auto waits = static_cast<size_t>(std::ranges::count_if(
        plan.instructions, [](const Instruction& i) { return i.waits_for >= 0; }));
    for (size_t i = 0; i < waits; ++i) {
      CompileOptions options = OptionsOf(Overlap::kOn);
      options.passes.plan_passes = {std::make_shared<ForgetWait>(i)};
      EXPECT_THAT(ErrorText([&] { OnCpu(drawn, options); }), HasSubstr("doesn't wait for c"))
          << text;
      ++refused;
    }
  }
  EXPECT_THAT(refused, Gt(40));
}

// ---- what a plan says

constexpr const char* kTraining = R"(program { block 0 {
  var x float32 [4]
  var g float32 [4]
  var h float32 [4]
  var e float32 [4]
  param w float32 [4] persistable
  param v float32 [4] persistable
  {Out: [g]} = tiny_copy(X: [x])
  {Out: [h]} = tiny_workspace(X: [g])
  {Out: [h]} = tiny_exchange(X: [h]) {factor = 2.0}
  {Out: [e]} = tiny_workspace(X: [x])
  {Out: [g]} = tiny_exchange(X: [g]) {factor = 2.0}
  {ParamOut: [w]} = tiny_sgd(Param: [w], Grad: [g]) {op_role = 2}
  {ParamOut: [v]} = tiny_sgd(Param: [v], Grad: [h]) {op_role = 2}
} })";

class OverlappedTraining : public Overlapped {
 protected:
  OverlappedTraining() {
    executor_.scope().Set("w", Row({1, 1, 1, 1}));
    executor_.scope().Set("v", Row({0, 0, 0, 0}));
  }
  ~OverlappedTraining() override { tiny::SetOnExchange({}); }

  CompiledProgram Compiled(const char* program = kTraining, Overlap overlap = Overlap::kOn) {
    return executor_.Compile(*ParseProgramText(program), OptionsOf(overlap));
  }
  std::vector<float> Held(const std::string& name) const {
    return executor_.scope().Get(name).ToVector<float>();
  }

  Executor executor_{Place::Cpu(), nullptr, &registry_};
  const FeedList feeds_ = {{"x", Row({1, 2, 3, 4})}};
};

// The sums begin as soon as they can, g's behind the last reader of g. The updates come last, and
// wait. What is computed meanwhile shares no bytes with what the other stream uses. The sums share
// the memory of their workspaces, since one runs after the other.
TEST_F(OverlappedTraining, ThePlanShowsTheStreamsAndTheWaits) {
  CompiledProgram program = Compiled();
  EXPECT_EQ(PrintPlan(program.Bind(feeds_, {"e"}).plan()), R"(plan cpu reuse=arena {
  value x#0 float32 [4] @feed
  value v#4 float32 [4] persistable @scope
  value w#8 float32 [4] persistable @scope
  {Out: [g#1 float32 [4] @0]} = tiny_copy(X: [x#0])
  {Out: [h#2 float32 [4] @64]} = tiny_workspace(X: [g#1]) workspaces=[16 @128]
  {Out: [h#3 float32 [4] @h#2]} = tiny_exchange(X: [h#2]) {factor = 2.0} @comm(c0) workspaces=[16 @128]
  {Out: [g#7 float32 [4] @g#1]} = tiny_exchange(X: [g#1]) {factor = 2.0} @comm(c1) workspaces=[16 @128] position=4
  {Out: [e#6 float32 [4] @192]} = tiny_workspace(X: [x#0]) workspaces=[16 @256] position=3
  {ParamOut: [v#5 float32 [4] persistable @scope]} = tiny_sgd(Param: [v#4], Grad: [h#3]) {op_role = 2} wait(c0) position=6
  {ParamOut: [w#9 float32 [4] persistable @scope]} = tiny_sgd(Param: [w#8], Grad: [g#7]) {op_role = 2} wait(c1) position=5
  feed [x#0]
  fetch [e#6]
  bytes max_live=80 planned=272 unshared=128
}
)");
}

TEST_F(OverlappedTraining, OneStreamHasThePlanOfOneRank) {
  const std::string one_rank =
      PrintPlan(executor_.Compile(*ParseProgramText(kTraining)).Bind(feeds_, {"e"}).plan());
  EXPECT_EQ(PrintPlan(Compiled(kTraining, Overlap::kOff).Bind(feeds_, {"e"}).plan()), one_rank);
  EXPECT_THAT(one_rank, ::testing::Not(HasSubstr("comm")));
}

TEST_F(OverlappedTraining, CollectivesRunInAnotherThreadOrInThisOne) {
  std::set<std::thread::id> threads;
  tiny::SetOnExchange([&](const KernelContext&) { threads.insert(std::this_thread::get_id()); });
  Compiled().Run(feeds_, {});
  EXPECT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0u);
  Compiled(kTraining, Overlap::kOff).Run(feeds_, {});
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 1u);
  EXPECT_THAT(Held("w"), ElementsAre(-3, -7, -11, -15));
  EXPECT_THAT(Held("v"), ElementsAre(-4, -8, -12, -16));
}

TEST_F(OverlappedTraining, TheTimesHaveTheWaits) {
  BoundProgram bound = Compiled().Bind(feeds_, {"e"});
  std::map<std::string, std::vector<double>> waits;
  for (const InstructionTime& time : bound.TimedStep()) {
    waits[time.type].push_back(time.waited_seconds);
    if (time.type == "tiny_exchange") {
      EXPECT_THAT(time.seconds, Gt(0));
    }
  }
  // The last instruction also waits for the end, whatever is left.
  EXPECT_THAT(waits["tiny_sgd"], ElementsAre(Gt(0), Gt(0)));
  EXPECT_THAT(waits["tiny_exchange"], ElementsAre(0, 0));
  EXPECT_THAT(waits["tiny_copy"], ElementsAre(0));
}

// ---- failures

TEST_F(OverlappedTraining, AnErrorHasThePlaceOfTheCollectiveOp) {
  CompiledProgram program = Compiled();
  tiny::SetOnExchange([](const KernelContext&) { Throw(ErrorCode::kIo, "rank 1 has ended"); });
  EXPECT_THAT(
      ErrorText(ErrorCode::kIo, [&] { program.Run(feeds_, {}); }),
      AllOf(::testing::StartsWith("tiny_exchange (block 0, op #2"), HasSubstr("rank 1 has ended")));
  EXPECT_THAT(Held("w"), ElementsAre(1, 1, 1, 1));
  tiny::SetOnExchange({});
  program.Run(feeds_, {});
  EXPECT_THAT(Held("v"), ElementsAre(-2, -4, -6, -8));
}

TEST_F(OverlappedTraining, CommunicatorsOfOtherPlacesOrRanksAreRefused) {
  const auto of_cpu = std::make_shared<EchoCommunicator>();
  const auto of_device = std::make_shared<EchoCommunicator>(EmulatedPlace());
  const auto refusal = [this](Place place, const DataParallelOptions& ranks) {
    const auto registry = harness::RegistryWithEmulation(registry_);
    Executor executor(place, nullptr, registry.get());
    return ErrorText(ErrorCode::kInvalidArgument,
                     [&] { executor.Compile(Program(), {.data_parallel = ranks}); });
  };
  EXPECT_EQ(refusal(Place::Cpu(), {.communicator = of_device}),
            StrCat("option data_parallel.communicator is of ", EmulatedPlace(),
                   ", expected a communicator of the CPU"));
  EXPECT_EQ(refusal(EmulatedPlace(), {.communicator = of_cpu}),
            StrCat("option data_parallel.device_communicator: there is none for the 2 ranks of a "
                   "program on ",
                   EmulatedPlace(), ", expected one (MakeNcclRank makes it)"));
  EXPECT_EQ(refusal(EmulatedPlace(), {.communicator = of_cpu, .device_communicator = of_cpu}),
            StrCat("option data_parallel.device_communicator is of cpu, expected one of ",
                   EmulatedPlace(), ", where the program runs"));
  EXPECT_EQ(refusal(EmulatedPlace(),
                    {.communicator = MakeThreadRanks(3)[1], .device_communicator = of_device}),
            "option data_parallel.device_communicator is of rank 0 of 2, expected rank 1 of 3 as "
            "in data_parallel.communicator");
}

// A check of data fails while a collective op still writes a variable.
TEST_F(OverlappedTraining, AFailureOfTheMainStreamWaitsBeforeItRestores) {
  CompiledProgram program = Compiled(R"(program { block 0 {
    var x float32 [4]
    var c float32 [4]
    param w float32 [4] persistable
    {Out: [w]} = tiny_exchange(X: [w]) {factor = 2.0}
    {Out: [c]} = tiny_check(X: [x])
  } })");
  tiny::SetOnExchange(
      [](const KernelContext&) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); });
  EXPECT_THAT(ErrorText([&] {
                program.Run({{"x", Row({1, -1, 1, 1})}}, {"c"});
              }),
              HasSubstr("tiny_check (block 0, op #1)"));
  EXPECT_THAT(Held("w"), ElementsAre(1, 1, 1, 1));
  program.Run(feeds_, {"c"});
  EXPECT_THAT(Held("w"), ElementsAre(2, 2, 2, 2));
}

}  // namespace
}  // namespace skiff
