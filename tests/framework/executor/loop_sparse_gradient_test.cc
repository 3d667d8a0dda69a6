// Sparse gradients of lookups in loops and branches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/ir/text.h"
#include "tests/framework/executor/loop_networks.h"
#include "tests/harness/text_cases.h"

namespace skiff {
namespace {

using ::testing::ElementsAre;

// A sparse gradient inside a loop is the rows of all iterations.
TEST(LoopGradients, OfSparseLookups) {
  const auto network = [](bool is_sparse) {
    return [is_sparse] {
      const Variable ids = layers::Data("ids", {5, 2, 1}, DType::kInt64);
      const Variable first = layers::FillConstant({2, 3}, DType::kFloat32, 0.0);
      layers::StaticRnn rnn;
      rnn.Body([&] {
        const Variable id = layers::Reshape(rnn.StepInput(ids), {2});
        const Variable h = rnn.Memory(first);
        const Variable row = layers::Embedding(
            id, {.rows = 7, .width = 3, .is_sparse = is_sparse, .param_attr = {.name = "table"}});
        const Variable next = layers::Tanh(h * 0.5f + row);
        rnn.UpdateMemory(h, next);
        rnn.StepOutput(next);
      });
      return layers::Mean(layers::Square(rnn.Outputs()[0]));
    };
  };
  const FeedList feeds = {
      {"ids", Tensor::FromValues<int64_t>({5, 2, 1}, {1, 2, 2, 2, 0, 6, 1, 1, 3, 2})}};
  const std::vector<double> sparse = Train(network(true), feeds);
  const std::vector<double> dense = Train(network(false), feeds);
  ASSERT_EQ(sparse.size(), dense.size());
  for (size_t i = 0; i < dense.size(); ++i) EXPECT_NEAR(sparse[i], dense[i], 1e-6f) << i;
}

// In a while nobody knows how many rows there will be: the gradient has a place for each row of the
// table. Adam in its lazy mode sees which of them the iterations had.
TEST(LoopGradients, OfSparseLookupsInAWhile) {
  const auto train = [](bool in_a_while, int64_t n) {
    Program main, startup;
    main.seed = startup.seed = 7;
    Variable loss;
    {
      const ProgramGuard guard(&main, &startup);
      const Variable ids = layers::Data("ids", {5, 2}, DType::kInt64);
      const auto add = [&](const Variable& t, const Variable& sum) {
        const Variable id = layers::Reshape(layers::Gather(ids, t), {2});
        const Variable row = layers::Embedding(
            id, {.rows = 7, .width = 3, .is_sparse = true, .param_attr = {.name = "table"}});
        return layers::Tanh(sum * 0.5f + row);
      };
      const auto index = [](int64_t i) {
        return layers::FillConstant({1}, DType::kInt64, static_cast<double>(i));
      };
      Variable state = layers::FillConstant({2, 3}, DType::kFloat32, 0.0);
      if (in_a_while) {
        const Variable end = index(n);
        state = layers::WhileLoop(
            [&](const Variables& v) { return layers::LessThan(v[0], end); },
            [&](const Variables& v) {
              return Variables{layers::Scale(v[0], {.bias = 1.0f}), add(v[0], v[1])};
            },
            {index(0), state})[1];
      } else {
        for (int64_t i = 0; i < n; ++i) state = add(index(i), state);
      }
      loss = layers::Mean(layers::Square(state));
      optimizer::Adam({.learning_rate = 0.1, .lazy_mode = true}).Minimize(loss);
    }
    Executor executor(Place::Cpu());
    executor.Run(startup);
    CompiledProgram step = executor.Compile(main);
    const Tensor ids = Tensor::FromValues<int64_t>({5, 2}, {1, 2, 2, 2, 0, 6, 1, 1, 3, 2});
    for (int i = 0; i < 3; ++i) step.Run({{"ids", ids}}, {loss});
    const std::vector<float> table = executor.scope().Get("table").ToVector<float>();
    return std::vector<double>(table.begin(), table.end());
  };
  for (const int64_t n : {1, 3, 5}) ExpectNear(train(true, n), train(false, n));
}

// A lookup in a branch that isn't taken touches no row of its table: momentum would move it.
TEST(LoopGradients, OfASparseLookupInABranchThatIsNotTaken) {
  const auto program =
      ParseProgramText(harness::ReadTextCase("tests/framework/autodiff/backward/sparse.txt",
                                             "A sparse lookup in one of two branches")
                           .before);
  AppendBackward(DefaultOpRegistry(), program.get(), "loss");
  Executor executor(Place::Cpu());
  executor.scope().Set("table", Numbers({5, 3}, 1));
  executor.scope().Set("w", Numbers({3, 3}, 2));
  for (const bool taken : {true, false}) {
    const Tensor rows = executor.Run(*program,
                                     {{"ids", Tensor::FromValues<int64_t>({2}, {3, 4})},
                                      {"flag", Tensor::FromValues<bool>({1}, {taken})},
                                      {"x", Numbers({2, 3}, 3)}},
                                     {"table@GRAD"})[0];
    ASSERT_TRUE(rows.is_selected_rows());
    EXPECT_THAT(rows.rows(), taken ? ElementsAre(3, 4) : ElementsAre(-1, -1));
  }
}

}  // namespace
}  // namespace skiff
