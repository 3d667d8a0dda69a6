// Programs with arrays of tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/ir/text.h"
#include "framework/op/arguments.h"
#include "framework/op/grad.h"
#include "framework/op/grad_name.h"
#include "framework/tensor/tensor.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Variable Index(int64_t value) { return layers::FillConstant({1}, DType::kInt64, double(value)); }

Variable Input(const std::string& name = "x", int64_t width = 2) {
  return layers::Data(name, {-1, width}, DType::kFloat64).StopGradient(false);
}

Tensor Numbers(const std::vector<double>& values) {
  return Tensor::FromValues<double>({1, static_cast<int64_t>(values.size())}, values);
}

Variable GradientOf(const Variable& loss, const Variable& x) {
  AppendBackward(DefaultOpRegistry(), &DefaultMainProgram(), loss.name());
  return {DefaultMainProgram().root(), GradName(x.name())};
}

class TensorArrayTest : public ::testing::Test {
 protected:
  void Build(const std::function<void()>& build) {
    const ProgramGuard guard(&main_, &startup_);
    build();
  }
  std::vector<Tensor> Run(const FeedList& feeds, const FetchList& fetches) {
    CompileOptions options;
    options.memory.poison_dead_memory = true;
    options.max_loop_iterations = 100;
    executor_.Run(startup_);
    return executor_.Compile(main_, options).Run(feeds, fetches);
  }
  // Calls body(i) for i = 0 to before n.
  static void ForEach(const Variable& n, const std::function<void(const Variable&)>& body) {
    const Variable i = Index(0);
    const Variable goes_on = layers::LessThan(i, n);
    layers::While loop(goes_on);
    loop.Body([&] {
      body(i);
      layers::Increment(i);
      layers::AssignTo(layers::LessThan(i, n), goes_on);
    });
  }

  Program main_;
  Program startup_;
  Executor executor_{Place::Cpu()};
};

TEST_F(TensorArrayTest, ReadsWhatWasWritten) {
  Variable read, length;
  Build([&] {
    const Variable x = Input();
    const Variable array = layers::CreateArray(DType::kFloat64);
    layers::ArrayWrite(x, Index(0), array);
    layers::ArrayWrite(x * 2.0f, Index(3), array);
    read = layers::ArrayRead(array, Index(3));
    length = layers::ArrayLength(array);
  });
  const auto found = Run({{"x", Numbers({1, 2})}}, {read, length});
  EXPECT_THAT(found[0].ToVector<double>(), ElementsAre(2, 4));
  EXPECT_EQ(found[1].Item<int64_t>(), 4);
}

TEST_F(TensorArrayTest, IsEmptyWhenARunBegins) {
  Variable length;
  Build([&] {
    const Variable n = layers::Data("n", {1}, DType::kInt64);
    const Variable array = layers::CreateArray(DType::kInt64);
    ForEach(n, [&](const Variable& i) { layers::ArrayWrite(i, i, array); });
    length = layers::ArrayLength(array);
  });
  CompiledProgram program = executor_.Compile(main_);
  const auto length_for = [&](int64_t n) {
    return program.Run({{"n", Tensor::FromValues<int64_t>({1}, {n})}}, {length})[0].Item<int64_t>();
  };
  EXPECT_EQ(length_for(5), 5);
  EXPECT_EQ(length_for(2), 2);
  EXPECT_EQ(length_for(0), 0);
  EXPECT_EQ(length_for(5), 5);
}

TEST_F(TensorArrayTest, IsEmptyWhenAnIterationOfItsBlockBegins) {
  Variable lengths;
  Build([&] {
    const Variable n = Index(3);
    lengths = layers::Assign(Index(0));
    ForEach(n, [&](const Variable& i) {
      const Variable own = layers::CreateArray(DType::kInt64);
      layers::ArrayWrite(i, Index(0), own);
      layers::AssignTo(lengths + layers::ArrayLength(own), lengths);
    });
  });
  EXPECT_EQ(Run({}, {lengths})[0].Item<int64_t>(), 3);
}

// d/dx of the sum of all elements that are read, times their weights.
TEST_F(TensorArrayTest, AddsUpTheGradientsOfAllWhoReadAnElement) {
  Variable loss, gradient;
  Build([&] {
    const Variable x = Input();
    const Variable array = layers::CreateArray(DType::kFloat64);
    layers::ArrayWrite(layers::Square(x), Index(1), array);
    const Variable once = layers::ArrayRead(array, Index(1)) * 3.0f;
    const Variable again = layers::ArrayRead(array, Index(1)) * 4.0f;
    loss = layers::ReduceSum(once) + layers::ReduceSum(again);
    gradient = GradientOf(loss, x);
  });
  const auto found = Run({{"x", Numbers({1, -2})}}, {loss, gradient});
  EXPECT_EQ(found[0].Item<double>(), 7 * (1 + 4));
  EXPECT_THAT(found[1].ToVector<double>(), ElementsAre(14 * 1, 14 * -2));
}

TEST_F(TensorArrayTest, AnOverwrittenElementHasTheGradientOfThoseWhoReadItBefore) {
  Variable loss, gradient;
  Build([&] {
    const Variable x = Input();
    const Variable array = layers::CreateArray(DType::kFloat64);
    layers::ArrayWrite(layers::Square(x), Index(0), array);
    const Variable before = layers::ArrayRead(array, Index(0));
    layers::ArrayWrite(x * 10.0f, Index(0), array);
    const Variable after = layers::ArrayRead(array, Index(0));
    loss = layers::ReduceSum(before) + layers::ReduceSum(after * 2.0f);
    gradient = GradientOf(loss, x);
  });
  const auto found = Run({{"x", Numbers({1, -2})}}, {gradient});
  EXPECT_THAT(found[0].ToVector<double>(), ElementsAre(2 * 1 + 20, 2 * -2 + 20));
}

// b wants no gradient in the second program. What else is fetched mustn't matter.
TEST_F(TensorArrayTest, AnElementThatIsOverwrittenHasNoGradientOfLaterReaders) {
  for (const bool wants : {true, false}) {
    Program program;
    Variable loss, gradient;
    {
      const ProgramGuard guard(&program, &startup_);
      const Variable x = Input();
      const Variable b = Input("b").StopGradient(!wants);
      const Variable array = layers::CreateArray(DType::kFloat64);
      layers::ArrayWrite(x * 1.0f, Index(0), array);
      const Variable before = layers::ArrayRead(array, Index(0));
      layers::ArrayWrite(b * 1.0f, Index(0), array);
      const Variable after = layers::ArrayRead(array, Index(0));
      loss = layers::ReduceSum(before) + layers::ReduceSum(after * 10.0f);
      gradient = GradientOf(loss, x);
    }
    const FeedList feeds = {{"x", Numbers({1, -2})}, {"b", Numbers({3, 4})}};
    FetchList fetches = {gradient};
    EXPECT_THAT(executor_.Run(program, feeds, fetches)[0].ToVector<double>(), ElementsAre(1, 1));
    if (wants) fetches.push_back("b@GRAD");
    EXPECT_THAT(executor_.Run(program, feeds, fetches)[0].ToVector<double>(), ElementsAre(1, 1));
  }
}

// The body reads an array before it writes larger elements to it.
TEST_F(TensorArrayTest, HasRoomForElementsThatAreWrittenLater) {
  Variable sum;
  Build([&] {
    const Variable small = layers::FillConstant({2, 4}, DType::kFloat64, 1);
    const Variable large = layers::FillConstant({60, 4}, DType::kFloat64, 1);
    const Variable array = layers::CreateArray(DType::kFloat64);
    const Variable at = layers::Assign(Index(0));
    sum = layers::Assign(layers::FillConstant({1}, DType::kFloat64, 0));
    ForEach(Index(2), [&](const Variable&) {
      layers::ArrayWrite(small, Index(0), array);
      const Variable read = layers::ArrayRead(array, at) * 1.0f;
      layers::AssignTo(sum + layers::Reshape(layers::ReduceSum(read), {1}), sum);
      layers::ArrayWrite(large, Index(1), array);
      layers::AssignTo(Index(1), at);
    });
  });
  EXPECT_EQ(Run({}, {sum})[0].Item<double>(), 8 + 240);
}

// One plan serves runs with other rows, and the array has those of the run: written inside a loop,
// read behind it and in another one.
TEST_F(TensorArrayTest, HasTheRowsOfTheRun) {
  Variable behind, inside;
  Build([&] {
    const Variable x = layers::Data("x", {-1, 1}, DType::kFloat64, {.lod_level = 1});
    const Variable pooled = layers::SequencePool(x, "SUM");
    const Variable array = layers::CreateArray(DType::kFloat64);
    ForEach(Index(2), [&](const Variable& i) { layers::ArrayWrite(pooled * 2.0f, i, array); });
    inside = layers::Assign(layers::FillConstant({1}, DType::kFloat64, 0));
    ForEach(Index(2), [&](const Variable& i) {
      const Variable element = layers::ArrayRead(array, i) * 1.0f;
      layers::AssignTo(inside + layers::Reshape(layers::ReduceSum(element), {1}), inside);
    });
    behind = layers::ArrayRead(array, Index(0)) * 1.0f;
  });
  CompiledProgram program = executor_.Compile(main_);
  for (const std::vector<int64_t>& lengths :
       std::vector<std::vector<int64_t>>{{1, 1, 1, 1, 1, 1, 1, 1}, {2, 1, 3}}) {
    int64_t rows = 0;
    for (const int64_t length : lengths) rows += length;
    Tensor x =
        Tensor::FromValues<double>({rows, 1}, std::vector<double>(static_cast<size_t>(rows), 1));
    x.set_lod({OffsetsOf(lengths)});
    const auto found = program.Run({{"x", x}}, {behind, inside});
    std::vector<double> twice;
    for (const int64_t length : lengths) twice.push_back(2.0 * static_cast<double>(length));
    EXPECT_EQ(found[0].ToVector<double>(), twice);
    EXPECT_EQ(found[1].Item<double>(), static_cast<double>(4 * rows));
  }
}

// x[i + 1] = x[i] * x[i], so x[n] = x ^ (2 ^ n); the loss also reads the elements between.
// Each step of the gradient half must find the rows of its forward step.
TEST_F(TensorArrayTest, HasElementsOfOtherRowsInEachStepOfALayer) {
  Variable sums, gradient;
  Build([&] {
    const Variable w = layers::CreateParameter({2}, DType::kFloat64, {.name = "w"});
    const Variable array = layers::CreateArray(DType::kFloat64);
    layers::ArrayWrite(Input("few"), Index(0), array);
    layers::ArrayWrite(Input("many"), Index(1), array);
    const Variable order = layers::Data("order", {3, 1}, DType::kInt64);
    layers::StaticRnn rnn;
    rnn.Body([&] {
      const Variable x = layers::ArrayRead(array, rnn.StepInput(order));
      rnn.StepOutput(layers::ReduceSum(x * w, {.dims = {0}}));
    });
    sums = rnn.Outputs()[0];
    gradient = GradientOf(layers::ReduceSum(sums), w);
  });
  const Tensor many = Tensor::FromValues<double>({3, 2}, {1, 2, 3, 4, 5, 6});
  for (const std::vector<int64_t>& order : {std::vector<int64_t>{0, 1, 0}, {1, 0, 0}, {0, 0, 1}}) {
    const auto found = Run({{"few", Numbers({10, 20})},
                            {"many", many},
                            {"order", Tensor::FromValues<int64_t>({3, 1}, order)}},
                           {gradient});
    EXPECT_THAT(found[0].ToVector<double>(), ElementsAre(29, 52));
  }
}

TEST_F(TensorArrayTest, CarriesGradientsFromElementToElement) {
  Variable loss, gradient;
  Build([&] {
    const Variable x = Input("x", 1);
    const Variable n = layers::Data("n", {1}, DType::kInt64);
    const Variable array = layers::CreateArray(DType::kFloat64);
    layers::ArrayWrite(x, Index(0), array);
    ForEach(n, [&](const Variable& i) {
      const Variable element = layers::ArrayRead(array, i);
      layers::ArrayWrite(layers::Square(element), i + Index(1), array);
    });
    loss = layers::ReduceSum(layers::ArrayRead(array, n)) +
           layers::ReduceSum(layers::ArrayRead(array, Index(0)) * 5.0f);
    gradient = GradientOf(loss, x);
  });
  const auto found =
      Run({{"x", Numbers({1.1})}, {"n", Tensor::FromValues<int64_t>({1}, {3})}}, {loss, gradient});
  EXPECT_NEAR(found[0].Item<double>(), std::pow(1.1, 8) + 5 * 1.1, 1e-12);
  EXPECT_NEAR(found[1].Item<double>(), 8 * std::pow(1.1, 7) + 5, 1e-12);
}

TEST_F(TensorArrayTest, JoinsElements) {
  Variable joined, stacked, side_by_side, gradient;
  Build([&] {
    const Variable x = Input();
    const Variable array = layers::CreateArray(DType::kFloat64);
    layers::ArrayWrite(x, Index(0), array);
    layers::ArrayWrite(layers::Square(x), Index(1), array);
    joined = layers::ArrayToTensor(array);
    side_by_side = layers::ArrayToTensor(array, {.axis = 1});
    stacked = layers::ArrayToTensor(array, {.axis = -1, .stack = true});
    const Variable weights = layers::AssignValue({1, 2, 2}, std::vector<double>{1, 2, 3, 4});
    gradient = GradientOf(layers::ReduceSum(stacked * weights), x);
  });
  const auto found = Run({{"x", Numbers({5, 7})}}, {joined, side_by_side, stacked, gradient});
  EXPECT_EQ(found[0].shape(), Shape({2, 2}));
  EXPECT_THAT(found[0].ToVector<double>(), ElementsAre(5, 7, 25, 49));
  EXPECT_EQ(found[1].shape(), Shape({1, 4}));
  EXPECT_THAT(found[1].ToVector<double>(), ElementsAre(5, 7, 25, 49));
  EXPECT_EQ(found[2].shape(), Shape({1, 2, 2}));
  EXPECT_THAT(found[2].ToVector<double>(), ElementsAre(5, 25, 7, 49));
  EXPECT_THAT(found[3].ToVector<double>(), ElementsAre(1 + 2 * 2 * 5, 3 + 4 * 2 * 7));
}

TEST_F(TensorArrayTest, IsMadeOfTheParts) {
  Variable last;
  Build([&] {
    const Variable x = layers::Data("x", {3, 2}, DType::kFloat64);
    last = layers::ArrayRead(layers::TensorToArray(x), Index(2));
  });
  const Tensor x = Tensor::FromValues<double>({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Run({{"x", x}}, {last})[0].ToVector<double>(), ElementsAre(5, 6));
}

TEST_F(TensorArrayTest, AnErrorNamesTheIterationAndLeavesTheScopeAsItWas) {
  Variable loss;
  Build([&] {
    const Variable n = layers::Data("n", {1}, DType::kInt64);
    const Variable w = layers::Fc(Input(), 1, {.param_attr = {.name = "w"}});
    const Variable array = layers::CreateArray(DType::kFloat64);
    layers::ArrayWrite(w, Index(0), array);
    layers::ArrayWrite(w, Index(1), array);
    const Variable sum = layers::Assign(w);
    ForEach(n,
            [&](const Variable& i) { layers::AssignTo(sum + layers::ArrayRead(array, i), sum); });
    loss = layers::Mean(sum);
    optimizer::Sgd({.learning_rate = 0.1}).Minimize(loss);
  });
  executor_.Run(startup_);
  CompiledProgram step = executor_.Compile(main_);
  const auto run = [&](int64_t n) {
    step.Run({{"x", Numbers({1, 2})}, {"n", Tensor::FromValues<int64_t>({1}, {n})}}, {loss});
  };
  run(2);
  const std::vector<double> before = executor_.scope().Get("w").ToVector<double>();
  const std::string message = ErrorText(ErrorCode::kOutOfRange, [&] { run(4); });
  EXPECT_THAT(message, HasSubstr("while (block 0, op #"));
  EXPECT_THAT(message, HasSubstr("iteration 2: read_from_array (block 1, op #1"));
  EXPECT_THAT(message, HasSubstr("the array has no element 2, it has 2"));
  EXPECT_EQ(executor_.scope().Get("w").ToVector<double>(), before);
  run(2);
}

TEST_F(TensorArrayTest, RefusesWhatCannotBe) {
  Variable array, x;
  Build([&] {
    x = Input();
    array = layers::CreateArray(DType::kFloat64);
    EXPECT_THAT(InvalidArgumentText([&] { layers::ArrayRead(x, Index(0)); }),
                HasSubstr("\"x\" is lod_tensor, expected an array"));
    EXPECT_THAT(InvalidArgumentText(
                    [&] { layers::ArrayWrite(layers::Cast(x, DType::kFloat32), Index(0), array); }),
                HasSubstr("has elements of float64"));
    EXPECT_THAT(InvalidArgumentText([&] { layers::ReduceSum(array); }),
                HasSubstr("expected a tensor, found an array of tensors"));
    layers::ArrayWrite(x, Index(0), array);
  });
  EXPECT_THAT(InvalidArgumentText([&] {
                Run({{"x", Numbers({1, 2})}}, {array});
              }),
              HasSubstr("an array of tensors, expected a tensor; read its elements"));
}

TEST_F(TensorArrayTest, IsNoInputAndOutputOfOneOp) {
  const auto program = ParseProgramText(R"(program { block 0 {
    var x float32 [2, 3]
    var i int64 [1]
    var a lod_tensor_array float32 [2, 3]
    {Out: [a]} = write_to_array(X: [x], I: [i])
    {X@GRAD: [a]} = tensor_array_to_tensor_grad(X: [a], Out@GRAD: [x]) {axis = 0}
    {Out: [x]} = read_from_array(X: [a], I: [i])
  } })");
  EXPECT_THAT(InvalidArgumentText([&] {
                Executor(Place::Cpu())
                    .Run(*program,
                         {{"x", Tensor({2, 3}, DType::kFloat32)},
                          {"i", Tensor::FromValues<int64_t>({1}, {0})}},
                         {"x"});
              }),
              AllOf(HasSubstr("tensor_array_to_tensor_grad (block 0, op #1"),
                    HasSubstr("reads the array \"a\" and writes to it: expected another array")));
}

TEST_F(TensorArrayTest, RefusesATensorOfItsNameInTheScope) {
  Variable length;
  Build([&] {
    const Variable array = layers::CreateArray(DType::kFloat64);
    layers::ArrayWrite(Input(), Index(0), array);
    length = layers::ArrayLength(array);
    executor_.scope().Set(array.name(), Numbers({1}));
  });
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition,
                        [&] {
                          Run({{"x", Numbers({1, 2})}}, {length});
                        }),
              HasSubstr("which is an array of the program: expected another name"));
}

TEST_F(TensorArrayTest, RefusesElementsThatGrowInEachIteration) {
  Variable length;
  Build([&] {
    const Variable array = layers::CreateArray(DType::kFloat64);
    layers::ArrayWrite(Input(), Index(0), array);
    ForEach(Index(3), [&](const Variable& i) {
      const Variable element = layers::ArrayRead(array, i);
      layers::ArrayWrite(layers::Concat({element, element}, 0), i + Index(1), array);
    });
    length = layers::ArrayLength(array);
  });
  EXPECT_THAT(ErrorText(ErrorCode::kUnimplemented,
                        [&] {
                          Run({{"x", Numbers({1, 2})}}, {length});
                        }),
              HasSubstr("each iteration would write larger elements to an array than the one "
                        "before: expected a bound on their rows"));
}

}  // namespace
}  // namespace skiff
