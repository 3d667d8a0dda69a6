// Beam search in a while, as Fluid's programs have it: rows and LoDs differ from iteration to
// iteration.
#include "framework/builder/beam_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/executor/executor.h"
#include "tests/harness/beam_search_loop.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kTokens = 6;
constexpr int64_t kBegin = 0;
constexpr int64_t kEnd = 1;
constexpr int64_t kMost = 6;

// harness::BeamSearchLoop by hand.
constexpr int64_t kStateWidth = kTokens;
using State = std::vector<double>;

State Next(const State& state, const std::vector<double>& table, int64_t token) {
  State next(state.size());
  for (size_t i = 0; i < next.size(); ++i) {
    next[i] = 3 * std::tanh(state[i] + table[static_cast<size_t>(token * kStateWidth) + i]);
  }
  return next;
}

double LogProbability(const State& state, int64_t token) {
  double sum = 0;
  for (const double value : state) sum += std::exp(value);
  return state[static_cast<size_t>(token)] - std::log(sum);
}

struct Hypothesis {
  std::vector<int64_t> ids = {kBegin};
  double score = 0;
  State state;

  bool has_ended() const { return ids.back() == kEnd; }
};

// Returns the hypotheses of one source, the best one first.
std::vector<Hypothesis> SearchByHand(const State& first, const std::vector<double>& table,
                                     size_t beam_size) {
  std::vector<Hypothesis> beam = {{.state = first}};
  for (int64_t step = 0; step < kMost; ++step) {
    std::vector<Hypothesis> next;
    for (const Hypothesis& hypothesis : beam) {
      if (hypothesis.has_ended()) {
        next.push_back(hypothesis);
        continue;
      }
      const State state = Next(hypothesis.state, table, hypothesis.ids.back());
      for (int64_t token = 0; token < kTokens; ++token) {
        next.push_back({.ids = hypothesis.ids,
                        .score = hypothesis.score + LogProbability(state, token),
                        .state = state});
        next.back().ids.push_back(token);
      }
    }
    std::ranges::sort(next, std::greater<>(), &Hypothesis::score);
    next.resize(std::min(next.size(), beam_size));
    beam = std::move(next);
    if (std::ranges::all_of(beam, &Hypothesis::has_ended)) break;
  }
  return beam;
}

struct Search {
  explicit Search(int64_t beam_size) {
    const ProgramGuard guard(&main, &startup);
    const layers::BeamSentences found = harness::BeamSearchLoop({.dtype = DType::kFloat64,
                                                                 .tokens = kTokens,
                                                                 .most = kMost,
                                                                 .beam_size = beam_size,
                                                                 .end_id = kEnd});
    fetches = {found.ids, found.scores};
    CompileOptions compile;
    compile.memory.poison_dead_memory = true;
    compiled = std::make_unique<CompiledProgram>(executor.Compile(main, compile));
  }

  // Returns ids and scores.
  std::vector<Tensor> Run(const std::vector<State>& firsts, const std::vector<double>& table) {
    const auto sources = static_cast<int64_t>(firsts.size());
    std::vector<double> states;
    for (const State& first : firsts) states.insert(states.end(), first.begin(), first.end());
    std::vector<uint64_t> one_each(firsts.size() + 1);
    std::iota(one_each.begin(), one_each.end(), 0);
    Tensor ids = Tensor::FromValues<int64_t>({sources, 1}, std::vector(firsts.size(), kBegin));
    Tensor scores = Tensor::FromValues<double>({sources, 1}, std::vector(firsts.size(), 0.0));
    ids.set_lod({one_each, one_each});
    scores.set_lod({one_each, one_each});
    return compiled->Run({{"first", Tensor::FromValues<double>({sources, kStateWidth}, states)},
                          {"table", Tensor::FromValues<double>({kTokens, kStateWidth}, table)},
                          {"ids", ids},
                          {"scores", scores}},
                         fetches);
  }

  Program main, startup;
  Executor executor{Place::Cpu()};
  FetchList fetches;
  std::unique_ptr<CompiledProgram> compiled;
};

std::vector<double> Numbers(size_t count, double seed) {
  std::vector<double> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = std::sin(seed + 12.9898 * static_cast<double>(i + 1));
  }
  return numbers;
}

// One program serves batches of all sizes, whose hypotheses end at different steps.
TEST(BeamSearch, FindsWhatASearchByHandFinds) {
  for (const int64_t beam_size : {1, 2, 3, 5, 40}) {
    Search search(beam_size);
    for (const size_t sources : {1, 3, 2, 9, 1}) {
      SCOPED_TRACE(StrCat("beam_size = ", beam_size, ", ", sources, " sources"));
      const std::vector<double> table = Numbers(kTokens * kStateWidth, double(beam_size));
      std::vector<State> firsts;
      for (size_t i = 0; i < sources; ++i) firsts.push_back(Numbers(kStateWidth, 0.7 * double(i)));
      const std::vector<Tensor> found = search.Run(firsts, table);
      ASSERT_EQ(found[0].lod(), found[1].lod());
      ASSERT_EQ(found[0].lod().size(), 2u);
      ASSERT_EQ(found[0].lod()[0].size(), sources + 1);
      for (size_t source = 0; source < sources; ++source) {
        const std::vector<Hypothesis> expected =
            SearchByHand(firsts[source], table, static_cast<size_t>(beam_size));
        const uint64_t first = found[0].lod()[0][source];
        ASSERT_EQ(found[0].lod()[0][source + 1] - first, expected.size());
        for (size_t i = 0; i < expected.size(); ++i) {
          const uint64_t begin = found[0].lod()[1][first + i];
          const uint64_t end = found[0].lod()[1][first + i + 1];
          const auto ids = found[0].values<int64_t>().subspan(begin, end - begin);
          EXPECT_THAT(ids, ::testing::ElementsAreArray(expected[i].ids));
          EXPECT_NEAR(found[1].values<double>()[end - 1], expected[i].score, 1e-9);
        }
      }
    }
  }
}

// A beam may be as wide as an attribute says: there is room for all candidates.
TEST(BeamSearch, SelectsNoMoreThanThereAre) {
  Program main, startup;
  const ProgramGuard guard(&main, &startup);
  const layers::DataOptions nested{.lod_level = 2};
  const Variable last_ids = layers::Data("last_ids", {-1, 1}, DType::kInt64, nested);
  const Variable last_scores = layers::Data("last_scores", {-1, 1}, DType::kFloat32, nested);
  const Variable scores = layers::Data("scores", {-1, 3}, DType::kFloat32, nested);
  const layers::BeamSelection found =
      layers::BeamSearch(last_ids, last_scores, Variable(), scores,
                         {.beam_size = std::numeric_limits<int32_t>::max(), .end_id = kEnd});
  Tensor ids = Tensor::FromValues<int64_t>({2, 1}, {0, 0});
  Tensor before = Tensor::FromValues<float>({2, 1}, {0, 0});
  Tensor now = Tensor::FromValues<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  for (Tensor* tensor : {&ids, &before, &now}) tensor->set_lod({{0, 1, 2}, {0, 1, 2}});
  const std::vector<Tensor> ran =
      Executor(Place::Cpu())
          .Run(main, {{"last_ids", ids}, {"last_scores", before}, {"scores", now}},
               {found.ids, found.parents});
  EXPECT_THAT(ran[0].values<int64_t>(), ::testing::UnorderedElementsAre(0, 1, 2, 0, 1, 2));
  EXPECT_THAT(ran[1].values<int32_t>(), ::testing::ElementsAre(0, 0, 0, 1, 1, 1));
}

// Writes two elements to each of the arrays and decodes them.
class BeamSearchDecodeTest : public ::testing::Test {
 protected:
  static Tensor Ids(const std::vector<int64_t>& ids, const LoD& lod) {
    Tensor tensor = Tensor::FromValues<int64_t>({std::ssize(ids), 1}, ids);
    tensor.set_lod(lod);
    return tensor;
  }
  static std::vector<Tensor> Decode(const Tensor& first, const Tensor& second, int64_t beam_size) {
    Program main, startup;
    const ProgramGuard guard(&main, &startup);
    const Variable ids = layers::CreateArray(DType::kInt64);
    const Variable scores = layers::CreateArray(DType::kFloat32);
    for (const auto& [name, at] : {std::pair("first", 0), {"second", 1}}) {
      const Variable x = layers::Data(name, {-1, 1}, DType::kInt64, {.lod_level = 2});
      const Variable index = layers::FillConstant({1}, DType::kInt64, double(at));
      layers::ArrayWrite(x, index, ids);
      layers::ArrayWrite(layers::Cast(x, DType::kFloat32), index, scores);
    }
    const layers::BeamSentences found =
        layers::BeamSearchDecode(ids, scores, {.beam_size = beam_size, .end_id = kEnd});
    return Executor(Place::Cpu())
        .Run(main, {{"first", first}, {"second", second}}, {found.ids, found.scores});
  }
};

// A source of which the last step has selected nothing ends with the step before. (Here the scores
// are the ids.)
TEST_F(BeamSearchDecodeTest, FollowsTheLoDsBack) {
  const std::vector<Tensor> found = Decode(Ids({3, 1, 4, 5}, {{0, 1, 2}, {0, 2, 4}}),
                                           Ids({7, 1}, {{0, 2, 4}, {0, 0, 0, 2, 2}}), 2);
  EXPECT_THAT(found[0].values<int64_t>(), ::testing::ElementsAre(3, 1, 4, 7, 4, 1));
  EXPECT_EQ(found[0].lod(), (LoD{{0, 2, 4}, {0, 1, 2, 4, 6}}));
  EXPECT_EQ(found[1].lod(), found[0].lod());
}

TEST_F(BeamSearchDecodeTest, KeepsOneEnd) {
  const std::vector<Tensor> found =
      Decode(Ids({1, 2}, {{0, 1}, {0, 2}}), Ids({1, 6}, {{0, 2}, {0, 1, 2}}), 2);
  EXPECT_THAT(found[0].values<int64_t>(), ::testing::ElementsAre(2, 6, 1));
}

TEST_F(BeamSearchDecodeTest, RefusesStepsThatDoNotFollowEachOther) {
  const Tensor first = Ids({3, 4}, {{0, 1}, {0, 2}});
  EXPECT_THAT(
      InvalidArgumentText([&] {
        Decode(first, Ids({5}, {{0, 1}, {0, 1}}), 2);
      }),
      HasSubstr("element 1 of Ids continues 1 hypotheses, expected the rows of the one before, 2"));
  EXPECT_THAT(InvalidArgumentText([&] {
                Decode(first, Ids({5}, {{0, 1, 2}, {0, 1, 1}}), 2);
              }),
              HasSubstr("element 1 of Ids has 2 sources, element 0 has 1"));
  EXPECT_THAT(InvalidArgumentText([&] {
                Decode(first, Ids({5, 6}, {{0, 2}, {0, 1, 2}}), 1);
              }),
              HasSubstr("source 0 has 2 hypotheses, expected at most beam_size = 1"));
}

}  // namespace
}  // namespace skiff
