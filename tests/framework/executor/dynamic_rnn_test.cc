// DynamicRnn on ragged batches computes what a program computes that treats each sequence by
// itself, step by step.
#include "framework/builder/dynamic_rnn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/plan/loop.h"
#include "tests/harness/error_text.h"
#include "tests/harness/sgd_training.h"

namespace skiff {
namespace {

constexpr int64_t kWidth = 4;
constexpr int64_t kHidden = 5;
using Lengths = std::vector<int64_t>;

Tensor Numbers(const Shape& shape, int seed) {
  return harness::SmallNumbers(shape, seed, DType::kFloat64);
}

int64_t RowsOf(const Lengths& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

// What the networks read: a ragged x, a first state for each sequence, and ragged notes.
struct Batch {
  Lengths lengths;
  Lengths note_lengths;

  FeedList Feeds(bool is_ragged) const {
    Tensor x = Numbers({RowsOf(lengths), kWidth}, 1);
    Tensor first = Numbers({static_cast<int64_t>(lengths.size()), kHidden}, 2);
    Tensor notes = Numbers({RowsOf(note_lengths), kHidden}, 3);
    if (is_ragged) {
      x.set_lod({OffsetsOf(lengths)});
      notes.set_lod({OffsetsOf(note_lengths)});
    }
    return {{"x", x}, {"first", first}, {"notes", notes}};
  }
};

Variable Matrix(const Variable& x, const std::string& name) {
  return layers::Fc(x, kHidden, {.param_attr = {.name = name}, .bias_attr = false});
}

// One network, written for steps of any kind: what a step is given, and what it leaves.
struct Kind {
  bool zero_state = false;  // the first state, else from data
  bool attends = false;     // to the notes of its sequence
  bool joins = false;       // one op that wants three inputs with as many rows
  bool branches = false;    // the step is in a branch that is taken
  bool overwrites = false;  // `joins` with an op that would work in place on a static input
  bool reshapes = false;    // `joins` with a view of the view that a static input is
  bool norms = false;       // adds the norm of the state, whose gradient is computed in its place
};

// The state after x and the state before, if the step sees `context` [n, hidden], too.
Variable Cell(const Kind& kind, const Variable& x, const Variable& before,
              const Variable* context) {
  const Variable norm =
      kind.norms ? layers::PNorm(before * 2.0f, {.axis = 1, .keep_dim = true}) : Variable();
  Variable sum = Matrix(x, "u") + Matrix(before, "w");
  if (context != nullptr) sum = sum + Matrix(*context, "c");
  if (kind.norms) sum = sum + norm;
  return layers::Tanh(sum);
}

Variable JoiningCell(const Variable& x, const Variable& before, const Variable& first) {
  return layers::Tanh(Matrix(layers::Concat({x, before, first}, 1), "j"));
}

struct Inputs {
  Variable x, first, notes;
};

Inputs MakeInputs(bool is_ragged) {
  const int32_t levels = is_ragged ? 1 : 0;
  return {
      layers::Data("x", {-1, kWidth}, DType::kFloat64, {.lod_level = levels}),
      layers::Data("first", {-1, kHidden}, DType::kFloat64),
      layers::Data("notes", {-1, kHidden}, DType::kFloat64, {.lod_level = levels}),
  };
}

// Attention of states [n, hidden] to notes [rows, hidden] with n sequences.
Variable Attend(const Variable& state, const Variable& notes) {
  const Variable repeated = layers::SequenceExpandAs(state, notes);
  const Variable score =
      layers::ReduceSum(Matrix(notes, "k") * repeated, {.dims = {1}, .keep_dim = true});
  const Variable weight = layers::SequenceSoftmax(score);
  return layers::SequencePool(weight * notes, "SUM");
}

Variable WithDynamicRnn(const Kind& kind) {
  const Inputs in = MakeInputs(true);
  layers::DynamicRnn rnn;
  rnn.Body([&] {
    const Variable x = rnn.StepInput(in.x);
    const Variable before =
        kind.zero_state ? rnn.Memory({kHidden}, 0.0f, DType::kFloat64) : rnn.Memory(in.first);
    Variable context;
    if (kind.attends) context = Attend(before, rnn.StaticInput(in.notes));
    Variable first;
    if (kind.joins) first = rnn.StaticInput(in.first);
    if (kind.overwrites) first = layers::Tanh(first);
    if (kind.reshapes) first = layers::Reshape(layers::Reshape(first, {-1, 1}), {-1, kHidden});
    const auto step = [&] {
      return kind.joins ? JoiningCell(x, before, first)
                        : Cell(kind, x, before, kind.attends ? &context : nullptr);
    };
    Variable state;
    if (kind.branches) {
      const Variable flag = layers::FillConstant({1}, DType::kBool, 1.0);
      state = layers::Cond(
          flag, [&] { return Variables{step()}; }, [&] { return Variables{before * 0.5f}; })[0];
    } else {
      state = step();
    }
    rnn.UpdateMemory(before, state);
    rnn.StepOutput(state);
  });
  return layers::ReduceSum(layers::Square(rnn.Outputs()[0]));
}

Variable RowsFrom(const Variable& x, int64_t begin, int64_t end) {
  return layers::Slice(x, {.axes = {0}, .starts = {begin}, .ends = {end}});
}

Variable EachByItself(const Kind& kind, const Batch& batch) {
  const Inputs in = MakeInputs(false);
  std::vector<Variable> losses;
  int64_t row = 0;
  int64_t note = 0;
  for (size_t i = 0; i < batch.lengths.size(); ++i) {
    const auto sequence = static_cast<int64_t>(i);
    Variable state = kind.zero_state ? layers::FillConstant({1, kHidden}, DType::kFloat64, 0.0)
                                     : RowsFrom(in.first, sequence, sequence + 1);
    const Variable notes = RowsFrom(in.notes, note, note + batch.note_lengths[i]);
    note += batch.note_lengths[i];
    for (int64_t t = 0; t < batch.lengths[i]; ++t, ++row) {
      Variable context;
      if (kind.attends) {
        const Variable score = layers::MatMul(Matrix(notes, "k"), state, {.transpose_y = true});
        const Variable weight = layers::Softmax(score, 0);
        context = layers::MatMul(weight, notes, {.transpose_x = true});
      }
      const Variable x = RowsFrom(in.x, row, row + 1);
      Variable first = RowsFrom(in.first, sequence, sequence + 1);
      if (kind.overwrites) first = layers::Tanh(first);
      state = kind.joins ? JoiningCell(x, state, first)
                         : Cell(kind, x, state, kind.attends ? &context : nullptr);
      losses.push_back(layers::ReduceSum(layers::Square(state)));
    }
  }
  return layers::Sum(losses);
}

std::vector<double> Train(const std::function<Variable()>& build,
                          const std::vector<FeedList>& batches,
                          const CompileOptions& options = {}) {
  return harness::TrainBySgd(build, batches, options, /*learning_rate=*/0.05);
}

void ExpectNear(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
}

class DynamicRnnTest : public ::testing::TestWithParam<Batch> {
 protected:
  void ExpectSame(const Kind& kind) {
    const Batch& batch = GetParam();
    const int steps = 3;
    ExpectNear(Train([&] { return WithDynamicRnn(kind); },
                     std::vector<FeedList>(steps, batch.Feeds(true))),
               Train([&] { return EachByItself(kind, batch); },
                     std::vector<FeedList>(steps, batch.Feeds(false))));
  }
};

TEST_P(DynamicRnnTest, TrainsAsEachSequenceByItself) { ExpectSame({}); }

TEST_P(DynamicRnnTest, StartsWithAConstant) { ExpectSame({.zero_state = true}); }

TEST_P(DynamicRnnTest, ComputesGradientsInPlaceOfWhatAnIterationLeaves) {
  ExpectSame({.norms = true});
}

TEST_P(DynamicRnnTest, AttendsToAStaticInput) { ExpectSame({.attends = true}); }

TEST_P(DynamicRnnTest, MayHaveBranches) {
  ExpectSame({.branches = true});
  ExpectSame({.joins = true, .branches = true});
}

TEST_P(DynamicRnnTest, JoinsWhatBelongsToASequence) {
  ExpectSame({.joins = true});
  ExpectSame({.zero_state = true, .joins = true});
  ExpectSame({.joins = true, .overwrites = true});
  ExpectSame({.joins = true, .reshapes = true});
  ExpectSame({.joins = true, .branches = true, .reshapes = true});
}

// A training that attends to notes, before its first step.
struct AttendingTraining {
  AttendingTraining() {
    Program startup;
    main.seed = startup.seed = 7;
    const ProgramGuard guard(&main, &startup);
    loss = WithDynamicRnn({.attends = true});
    optimizer::Sgd({.learning_rate = 0.05}).Minimize(loss);
    executor.Run(startup);
  }

  Program main;
  Variable loss;
  Executor executor{Place::Cpu()};
};

// Calls use(loop) for the loops of a training that attends to notes, first the forward half.
template <typename Use>
void ForEachLoopOfTraining(const Use& use) {
  AttendingTraining training;
  const Batch batch{{2, 7, 9, 1}, {3, 1, 4, 2}};
  const BoundProgram bound =
      training.executor.Compile(training.main).Bind(batch.Feeds(true), {training.loss.name()});
  for (const Instruction& instruction : bound.plan().instructions) {
    if (instruction.kind == InstructionKind::kLoop) use(*instruction.loop);
  }
}

// What iterations see of it lies where it is, also for the gradient.
TEST(DynamicRnn, DoesNotCopyAStaticInput) {
  int shown = 0;
  ValueId notes;
  ForEachLoopOfTraining([&](const Loop& loop) {
    for (const Instruction& inner : loop.body.instructions) {
      if (inner.op->type != "shrink_rnn_memory") continue;
      const auto feed = std::ranges::find(loop.feeds, inner.InputIn("X"), &LoopFeed::value);
      if (feed == loop.feeds.end() || feed->kind != LoopFeed::Kind::kInvariant) continue;
      ++shown;
      notes = feed->value;
      EXPECT_EQ(loop.body.StorageOf(inner.OutputIn("Out")), notes);
    }
    // The gradient half has no stack of them, but the notes themselves.
    if (!loop.is_gradient) return;
    EXPECT_EQ(std::ranges::count(loop.feeds, notes, &LoopFeed::value), 1);
    EXPECT_EQ(std::ranges::count(loop.stashes, notes, &LoopStash::value), 0);
  });
  EXPECT_EQ(shown, 1);
}

TEST(DynamicRnn, MakesTheGradientOfWhatItShrinksInPlace) {
  int in_place = 0;
  ForEachLoopOfTraining([&](const Loop& loop) {
    for (const Instruction& inner : loop.body.instructions) {
      if (inner.op->type != "shrink_rnn_memory_grad") continue;
      EXPECT_EQ(loop.body.StorageOf(inner.OutputIn("X@GRAD")),
                loop.body.StorageOf(inner.InputIn("Out@GRAD")));
      ++in_place;
    }
  });
  EXPECT_EQ(in_place, 1);  // of the states; the notes need no gradient
}

// One program for batches of different lengths: what a batch has left is gone in the next.
TEST(DynamicRnn, TrainsOnLongShortAndLongBatches) {
  const std::vector<Batch> batches = {{{2, 7, 9, 1}, {3, 1, 4, 2}},
                                      {{1, 2, 2, 1}, {1, 1, 1, 1}},
                                      {{9, 3, 8, 2}, {2, 4, 3, 1}},
                                      {{3, 1}, {2, 2}},
                                      {{2, 7, 9, 1}, {3, 1, 4, 2}}};
  AttendingTraining training;
  CompiledProgram step = training.executor.Compile(training.main);
  for (const Batch& batch : batches) {
    // The same step from the same parameters, each sequence by itself.
    Program alone, unused;
    Variable expected;
    {
      const ProgramGuard guard(&alone, &unused);
      expected = EachByItself({.attends = true}, batch);
    }
    const double value =
        training.executor.Run(alone, batch.Feeds(false), {expected})[0].Item<double>();
    EXPECT_NEAR(step.Run(batch.Feeds(true), {training.loss})[0].Item<double>(), value, 1e-12);
  }
}

TEST(DynamicRnn, RefusesStepInputsOfDifferentLengths) {
  Program main, startup;
  Variable sum;
  {
    const ProgramGuard guard(&main, &startup);
    const Variable x = layers::Data("x", {-1, 2}, DType::kFloat64, {.lod_level = 1});
    const Variable y = layers::Data("y", {-1, 2}, DType::kFloat64, {.lod_level = 1});
    layers::DynamicRnn rnn;
    rnn.Body([&] { rnn.StepOutput(rnn.StepInput(x) + rnn.StepInput(y)); });
    sum = layers::ReduceSum(rnn.Outputs()[0]);
  }
  Tensor x = Numbers({3, 2}, 1);
  Tensor y = Numbers({3, 2}, 2);
  x.set_lod({{0, 1, 3}});
  y.set_lod({{0, 2, 3}});
  Executor executor(Place::Cpu());
  EXPECT_NE(InvalidArgumentText([&] {
              executor.Run(main, {{"x", x}, {"y", y}}, {sum});
            }).find("have other lengths than those of the rank table"),
            std::string::npos);
}

TEST(DynamicRnn, RefusesAMemoryThatChangesItsShape) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {-1, 2}, DType::kFloat32, {.lod_level = 1});
  std::string names;
  const auto refused = [&](const std::function<Variable(const Variable&, const Variable&)>& next) {
    layers::DynamicRnn rnn;
    return InvalidArgumentText([&] {
      rnn.Body([&] {
        const Variable part = rnn.StepInput(x);
        const Variable memory = rnn.Memory({2});
        const Variable after = next(part, memory);
        names = StrCat(after.name(), ", ", memory.name());
        rnn.UpdateMemory(memory, after);
      });
    });
  };
  const std::string grows = refused([](const Variable& part, const Variable& memory) {
    return layers::Concat({memory, part}, 1);
  });
  const std::string next = names.substr(0, names.find(','));
  const std::string memory = names.substr(names.find(' ') + 1);
  EXPECT_NE(grows.find("dynamic_rnn_test.cc:"), std::string::npos) << grows;
  EXPECT_NE(grows.find("the next value \"" + next + "\" is float32 [-1, 4], the memory \"" +
                       memory + "\" is float32 [-1, 2]: expected the same"),
            std::string::npos)
      << grows;
  const std::string other = refused(
      [](const Variable& part, const Variable&) { return layers::Cast(part, DType::kFloat64); });
  EXPECT_NE(other.find("is float64 [-1, 2], the memory"), std::string::npos) << other;
}

// A body that puts the steps of sequences together: the table has the LoD of the run.
TEST(DynamicRnn, ARankTableInTheBodyOfALoop) {
  Program main, startup;
  Variable sum;
  {
    const ProgramGuard guard(&main, &startup);
    const Variable x = layers::Data("x", {-1, 1}, DType::kFloat64, {.lod_level = 1});
    const Variable table = layers::LodRankTable(x);
    const Variable steps = layers::LodTensorToArray(x, table);
    const Variable one = layers::FillConstant({1}, DType::kInt64, 1);
    sum = layers::WhileLoop([&](const Variables& v) { return layers::LessThan(v[0], one); },
                            [&](const Variables& v) {
                              const Variable largest = layers::SequencePool(
                                  layers::ArrayToLodTensor(steps, table), "MAX");
                              return Variables{layers::Increment(layers::Assign(v[0])),
                                               layers::Reshape(layers::ReduceSum(largest), {1})};
                            },
                            {layers::FillConstant({1}, DType::kInt64, 0),
                             layers::FillConstant({1}, DType::kFloat64, 0)})[1];
  }
  Executor executor(Place::Cpu());
  for (const bool exact_rows : {false, true}) {
    CompiledProgram program = executor.Compile(main, {.exact_rows = exact_rows});
    for (const auto& [lengths, expected] :
         {std::pair(Lengths{1, 2, 3}, 0.0 + 2 + 5), std::pair(Lengths{3, 2, 1}, 2.0 + 4 + 5)}) {
      Tensor x = Tensor::FromValues<double>({6, 1}, {0, 1, 2, 3, 4, 5});
      x.set_lod({OffsetsOf(lengths)});
      EXPECT_EQ(program.Run({{"x", x}}, {sum})[0].Item<double>(), expected);
    }
  }
}

// A state for each sequence, of which batches have different numbers, is handed from iteration to
// iteration.
TEST(DynamicRnn, AWhileWhoseStateHasARowForEachSequence) {
  for (const int64_t width : {3, 48}) {
    const auto build = [&] {
      const Variable x = layers::Data("x", {-1, width}, DType::kFloat64, {.lod_level = 1});
      const Variable two = layers::FillConstant({1}, DType::kInt64, 2.0);
      const Variable state = layers::WhileLoop(
          [&](const Variables& v) { return layers::LessThan(v[0], two); },
          [&](const Variables& v) {
            return Variables{layers::Scale(v[0], {.bias = 1.0f}),
                             layers::Tanh(layers::Fc(
                                 v[1], width, {.param_attr = {.name = "w"}, .bias_attr = false}))};
          },
          {layers::FillConstant({1}, DType::kInt64, 0.0), layers::SequencePool(x, "SUM")})[1];
      return layers::ReduceSum(layers::Square(state));
    };
    std::vector<FeedList> batches;
    for (const Lengths& lengths : {Lengths{3, 1, 2}, Lengths{1, 4, 1, 3, 1}, Lengths{2, 2}}) {
      Tensor x = Numbers({RowsOf(lengths), width}, 1);
      x.set_lod({OffsetsOf(lengths)});
      batches.push_back({{"x", x}});
    }
    EXPECT_EQ(Train(build, batches), Train(build, batches, {.exact_rows = true})) << width;
  }
}

// With more weights than rows in an iteration.
Variable WithWideGru() {
  constexpr int64_t kWide = 64;
  const Variable x = layers::Data("x", {-1, kWidth}, DType::kFloat64, {.lod_level = 1});
  const Variable wide = layers::Fc(x, 2 * kWide, {.param_attr = {.name = "wide"}});
  layers::DynamicRnn rnn;
  rnn.Body([&] {
    const Variable step = rnn.StepInput(wide);
    const Variable before = rnn.Memory({kWide}, 0.5f, DType::kFloat64);
    const Variable gates =
        layers::Fc(step, 3 * kWide, {.param_attr = {.name = "gates"}, .bias_attr = false});
    const Variable state = layers::GruUnit(
        gates, before, {.param_attr = {.name = "state"}, .bias_attr = ParamAttr{.name = "bias"}});
    rnn.UpdateMemory(before, state);
    rnn.StepOutput(state);
  });
  return layers::ReduceSum(layers::Square(rnn.Outputs()[0]));
}

// Weights meet the rows of many iterations at once, however many each has (batch_over_time).
TEST(DynamicRnn, MultipliesTheRowsOfManyIterations) {
  CompileOptions one_by_one;
  one_by_one.passes.skip = {"batch_over_time"};
  std::vector<FeedList> batches;
  for (const Lengths& lengths :
       {Lengths{3, 5, 2}, Lengths{1}, Lengths{1, 0, 3}, Lengths{200, 350, 7, 41}, Lengths{2, 2}}) {
    batches.push_back({{"x", Batch{lengths, lengths}.Feeds(true)[0].second}});
  }
  CompileOptions together;
  int64_t most = 0;
  together.passes.plan_observer = [&](const PassReport& report, const Plan&) {
    if (report.pass == "batch_over_time") most = std::max(most, report.changes);
  };
  const std::vector<double> found = Train(WithWideGru, batches, together);
  const std::vector<double> expected = Train(WithWideGru, batches, one_by_one);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-11 * (1 + std::abs(expected[i]))) << i;
  }
  // The inputs' product before; the gradients of its weights and of those of the state after.
  EXPECT_EQ(most, 3);
}

// New lengths whose counts round up to the same capacity need no new plan.
TEST(DynamicRnn, HasOnePlanForBatchesOfAboutTheSameSize) {
  AttendingTraining training;
  CompiledProgram step = training.executor.Compile(training.main);
  for (const Batch& batch :
       {Batch{{9, 9, 8, 7, 3}, {9, 9, 8, 7, 4}}, Batch{{1, 12, 10, 8, 6}, {10, 7, 5, 8, 8}},
        Batch{{4, 8, 8, 8, 5, 2}, {2, 8, 8, 8, 6, 6}}}) {
    step.Run(batch.Feeds(true), {training.loss});
  }
  EXPECT_EQ(step.preparation().plans, 1);
}

INSTANTIATE_TEST_SUITE_P(Batches, DynamicRnnTest,
                         ::testing::Values(Batch{{1}, {2}}, Batch{{3, 5, 2}, {2, 1, 3}},
                                           Batch{{4, 4, 4, 4}, {1, 3, 2, 2}},
                                           Batch{{1, 0, 3}, {2, 2, 1}},
                                           Batch{{2, 7, 7, 1, 9, 3}, {3, 1, 4, 1, 5, 2}}));

}  // namespace
}  // namespace skiff
