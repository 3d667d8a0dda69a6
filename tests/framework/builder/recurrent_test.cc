#include "framework/builder/recurrent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/builder/data.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "tests/framework/builder/builder_fixture.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RecurrentTest : public BuilderTest {
 protected:
  Variable x_ = layers::Data("x", {5, -1, 3});
};

TEST_F(RecurrentTest, HasStatesOfBothDirections) {
  const layers::LstmLayerStates states =
      layers::Lstm(x_, {.hidden_size = 4, .num_layers = 2, .bidirectional = true});
  EXPECT_THAT(states.out.dims(), ElementsAre(5, -1, 8));
  EXPECT_THAT(states.hidden.dims(), ElementsAre(4, -1, 4));
  EXPECT_THAT(states.cell.dims(), ElementsAre(4, -1, 4));
}

TEST_F(RecurrentTest, TakesTheBatchFirst) {
  const Variable x = layers::Data("batch_first", {-1, 6, 3});
  const layers::RnnStates states = layers::Gru(x, {.hidden_size = 4, .batch_first = true});
  EXPECT_THAT(states.out.dims(), ElementsAre(-1, 6, 4));
  EXPECT_THAT(states.hidden.dims(), ElementsAre(1, -1, 4));
}

TEST_F(RecurrentTest, NamesParametersByLayerAndDirection) {
  layers::SimpleRnn(x_, {.hidden_size = 4, .bidirectional = true, .name = "r"}, "relu");
  const std::vector<std::string> names = {"r.weight_ih_l0_0",         "r.weight_hh_l0_0",
                                          "r.bias_ih_l0_0",           "r.bias_hh_l0_0",
                                          "r.weight_ih_l0_reverse_0", "r.weight_hh_l0_reverse_0",
                                          "r.bias_ih_l0_reverse_0",   "r.bias_hh_l0_reverse_0"};
  EXPECT_EQ(ParameterNames(), names);
  EXPECT_THAT(LastOp().Input("WeightList"), ElementsAre(names[0], names[1], names[4], names[5],
                                                        names[2], names[3], names[6], names[7]));
  EXPECT_EQ(LastOp().Attr<std::string>("mode", ""), "RNN_RELU");
}

TEST_F(RecurrentTest, TakesInitialStates) {
  const Variable hidden = layers::Data("hidden", {1, -1, 4});
  const Variable cell = layers::Data("cell", {1, -1, 4});
  layers::Lstm(x_, {.hidden_size = 4, .initial_hidden = hidden, .initial_cell = cell});
  EXPECT_THAT(LastOp().Input("PreState"), ElementsAre("hidden", "cell"));
}

TEST_F(RecurrentTest, RejectsWhatDoesNotFit) {
  const Variable state = layers::Data("state", {1, -1, 4});
  const auto text_of = [&](const layers::RecurrentOptions& options) {
    return ErrorText([&] { layers::Lstm(x_, options); });
  };
  EXPECT_THAT(text_of({}), HasSubstr("hidden_size = 0"));
  EXPECT_THAT(text_of({.hidden_size = 4, .dropout = 1.0f}), HasSubstr("outside [0, 1)"));
  EXPECT_THAT(text_of({.hidden_size = 4, .initial_hidden = state}),
              HasSubstr("only one of initial_hidden and initial_cell"));
  EXPECT_THAT(text_of({.hidden_size = 4, .param_attr = {.name = "w"}}),
              HasSubstr("there are several of each"));
  EXPECT_THAT(ErrorText([&] {
                layers::Gru(x_, {.hidden_size = 4, .initial_hidden = state, .initial_cell = state});
              }),
              HasSubstr("only an LSTM has cells"));
  EXPECT_THAT(ErrorText([&] { layers::SimpleRnn(x_, {.hidden_size = 4}, "sigmoid"); }),
              HasSubstr("expected tanh or relu"));
}

TEST_F(RecurrentTest, TrainsOnPaddedSequences) {
  const Variable lengths = layers::Data("lengths", {-1}, DType::kInt64);
  const layers::LstmLayerStates states = layers::Lstm(
      x_, {.hidden_size = 4, .num_layers = 2, .bidirectional = true, .lengths = lengths});
  const Variable loss = layers::Mean(states.out * states.out);
  optimizer::Sgd({.learning_rate = 1}).Minimize(loss);
  Executor executor;
  executor.Run(startup_);
  const FeedList feeds = {{"x", Tensor::FromValues<float>({5, 2, 3}, std::vector<float>(30, 0.5f))},
                          {"lengths", Tensor::FromValues<int64_t>({2}, {5, 2})}};
  std::vector<float> losses;
  for (int i = 0; i < 5; ++i) {
    const std::vector<Tensor> fetched = executor.Run(main_, feeds, {loss, states.out});
    losses.push_back(fetched[0].Item<float>());
    const float* out = fetched[1].data<float>();
    for (int64_t time = 2; time < 5; ++time) {
      const std::vector<float> padding(out + (time * 2 + 1) * 8, out + (time * 2 + 2) * 8);
      EXPECT_THAT(padding, Each(0.0f));
    }
  }
  EXPECT_LT(losses.back(), losses.front());
}

TEST_F(RecurrentTest, ProjectsRaggedSequences) {
  const Variable ragged = layers::Data("ragged", {-1, 24}, DType::kFloat32, {.lod_level = 1});
  const layers::LstmpStates states =
      layers::DynamicLstmp(ragged, {.size = 6, .proj_size = 2, .name = "p"});
  EXPECT_THAT(states.projection.dims(), ElementsAre(-1, 2));
  EXPECT_THAT(states.cell.dims(), ElementsAre(-1, 6));
  EXPECT_THAT(ParameterNames(), ElementsAre("p.w_0", "p.w_1", "p.b_0"));
  EXPECT_THAT(ErrorText([&] { layers::DynamicLstmp(ragged, {.size = 5, .proj_size = 2}); }),
              HasSubstr("expected [rows, 4 * 5]"));
}

}  // namespace
}  // namespace skiff
