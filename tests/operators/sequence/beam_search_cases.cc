#include <algorithm>
#include <cmath>

#include "tests/operators/half_case.h"
#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

constexpr int kEnd = 0;

struct Candidate {
  int64_t hypothesis;
  double id;
  double score;
};

std::vector<Candidate> CandidatesOf(const Arrays& inputs, int64_t hypothesis, bool is_accumulated) {
  const auto at = static_cast<size_t>(hypothesis);
  const double before = inputs.at("pre_scores")[0].values[at];
  if (inputs.at("pre_ids")[0].values[at] == kEnd) return {{hypothesis, kEnd, before}};
  const Array& scores = inputs.at("scores")[0];
  const auto width = static_cast<size_t>(scores.shape.element_count(1, scores.shape.rank()));
  std::vector<Candidate> candidates;
  for (size_t d = 0; d < width; ++d) {
    const size_t place = at * width + d;
    candidates.push_back(
        {hypothesis,
         inputs.contains("ids") ? inputs.at("ids")[0].values[place] : static_cast<double>(d),
         is_accumulated ? scores.values[place] : before + std::log(scores.values[place])});
  }
  return candidates;
}

// Sorts all candidates of a source, the best ones first, and cuts.
std::vector<Candidate> BestOf(const Arrays& inputs, uint64_t begin, uint64_t end, size_t beam_size,
                              bool is_accumulated) {
  std::vector<Candidate> all;
  for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
    for (const Candidate& candidate : CandidatesOf(inputs, i, is_accumulated))
      all.push_back(candidate);
  }
  std::ranges::stable_sort(all, [](const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.hypothesis > b.hypothesis;
  });
  all.resize(std::min(all.size(), beam_size));
  const auto has_ended = [&](const Candidate& found) {
    return inputs.at("pre_ids")[0].values[static_cast<size_t>(found.hypothesis)] == kEnd;
  };
  if (std::ranges::all_of(all, has_ended)) all.clear();
  std::ranges::stable_sort(all, {}, &Candidate::hypothesis);
  return all;
}

Array Column(std::vector<double> values, DType dtype) {
  const auto rows = static_cast<int64_t>(values.size());
  return Values({rows, 1}, std::move(values), dtype);
}

// `sources` are the offsets of the sources among the hypotheses.
Arrays BeamSearchReference(const Arrays& inputs, const std::vector<uint64_t>& sources,
                           size_t beam_size, bool is_accumulated) {
  std::vector<double> ids, scores, parents;
  std::vector<uint64_t> selected = {0};
  for (size_t i = 0; i + 1 < sources.size(); ++i) {
    const auto best = BestOf(inputs, sources[i], sources[i + 1], beam_size, is_accumulated);
    for (const Candidate& candidate : best) {
      ids.push_back(candidate.id);
      scores.push_back(candidate.score);
      parents.push_back(static_cast<double>(candidate.hypothesis));
    }
    for (uint64_t row = sources[i]; row < sources[i + 1]; ++row) {
      selected.push_back(selected.back() +
                         static_cast<uint64_t>(std::ranges::count(best, static_cast<int64_t>(row),
                                                                  &Candidate::hypothesis)));
    }
  }
  const auto rows = static_cast<int64_t>(ids.size());
  Array found_ids = Column(ids, DType::kInt64);
  Array found_scores = Values({rows, 1}, scores);
  found_ids.lod = found_scores.lod = {sources, selected};
  return {{"selected_ids", {found_ids}},
          {"selected_scores", {found_scores}},
          {"parent_idx", {Values({rows}, parents, DType::kInt32)}}};
}

struct Search {
  std::vector<int64_t> groups;  // hypotheses of each source
  std::vector<double> last_ids;
  int64_t width = 5;
  int beam_size = 2;
  bool has_ids = true;
  bool is_accumulated = true;
};

OpCase BeamSearchCase(const std::string& name, const Search& search) {
  const auto rows = static_cast<int64_t>(search.last_ids.size());
  Arrays inputs;
  inputs["pre_ids"] = {Column(search.last_ids, DType::kInt64)};
  inputs["pre_scores"] = {Distinct({rows, 1}, 1, -3, -1)};
  if (search.has_ids) inputs["ids"] = {Integers({rows, search.width}, 2, 0, 9)};
  const Array scores = search.is_accumulated ? Distinct({rows, search.width}, 3, -3, -1)
                                             : Distinct({rows, search.width}, 3, 0.01, 1);
  inputs["scores"] = {
      Ragged(scores, search.groups, std::vector<int64_t>(search.last_ids.size(), 1))};
  std::vector<uint64_t> sources = {0};
  for (const int64_t count : search.groups) {
    sources.push_back(sources.back() + static_cast<uint64_t>(count));
  }
  AttributeMap attrs = {{"level", 0}, {"beam_size", search.beam_size}, {"end_id", kEnd}};
  if (!search.is_accumulated) attrs["is_accumulated"] = false;
  return {.name = name,
          .type = "beam_search",
          .inputs = std::move(inputs),
          .attrs = std::move(attrs),
          .reference =
              [=](const Arrays& given) {
                return BeamSearchReference(given, sources, static_cast<size_t>(search.beam_size),
                                           search.is_accumulated);
              },
          .outputs = {{"selected_ids", 1}, {"selected_scores", 1}, {"parent_idx", 1}}};
}

// A case whose results are written down.
OpCase Example(const std::string& name, int beam_size, const std::vector<double>& scores,
               const std::vector<double>& ids, const std::vector<double>& of_ids,
               const std::vector<double>& parents, const std::vector<uint64_t>& selected) {
  OpCase example = BeamSearchCase(name, {.groups = {2}, .last_ids = {1, 2}, .width = 3});
  example.inputs["ids"] = {Values({2, 3}, ids, DType::kInt64)};
  example.inputs["scores"] = {Ragged(Values({2, 3}, scores), {2}, {1, 1})};
  example.attrs["beam_size"] = beam_size;
  example.reference = [=](const Arrays&) {
    Array found = Column(of_ids, DType::kInt64);
    found.lod = {{0, 2}, selected};
    const auto rows = static_cast<int64_t>(parents.size());
    return Arrays{{"selected_ids", {found}},
                  {"parent_idx", {Values({rows}, parents, DType::kInt32)}}};
  };
  return example;
}

}  // namespace

void AddBeamSearchCases(CaseList& cases) {
  cases.push_back(BeamSearchCase("first_step", {.groups = {1, 1, 1}, .last_ids = {7, 7, 7}}));
  cases.push_back(BeamSearchCase("later_step", {.groups = {2, 2}, .last_ids = {1, 2, 3, 4}}));
  cases.push_back(InHalf(cases.back()));
  cases.push_back(BeamSearchCase(
      "unequal_sources", {.groups = {1, 4, 2}, .last_ids = {1, 2, 3, 4, 5, 6, 7}, .width = 3}));
  cases.push_back(
      BeamSearchCase("one_that_has_ended", {.groups = {2, 2}, .last_ids = {kEnd, 2, 3, kEnd}}));
  cases.push_back(BeamSearchCase("a_source_that_is_through",
                                 {.groups = {2, 2, 1}, .last_ids = {kEnd, kEnd, 3, 4, kEnd}}));
  cases.push_back(
      BeamSearchCase("all_are_through", {.groups = {2, 1}, .last_ids = {kEnd, kEnd, kEnd}}));
  cases.push_back(BeamSearchCase("a_source_without_hypotheses",
                                 {.groups = {0, 2, 0}, .last_ids = {1, 2}, .beam_size = 3}));
  cases.push_back(
      BeamSearchCase("beam_of_one", {.groups = {1, 1}, .last_ids = {3, 4}, .beam_size = 1}));
  cases.push_back(BeamSearchCase(
      "beam_of_all", {.groups = {2, 1}, .last_ids = {3, 4, 5}, .width = 4, .beam_size = 50}));
  cases.push_back(
      BeamSearchCase("one_candidate_each", {.groups = {3}, .last_ids = {3, 4, 5}, .width = 1}));
  cases.push_back(BeamSearchCase("without_ids", {.groups = {2, 2},
                                                 .last_ids = {1, kEnd, 3, 4},
                                                 .width = 6,
                                                 .beam_size = 3,
                                                 .has_ids = false}));
  cases.push_back(BeamSearchCase(
      "probabilities",
      {.groups = {2, 2}, .last_ids = {1, kEnd, 3, 4}, .beam_size = 3, .is_accumulated = false}));
  cases.push_back(BeamSearchCase("many", {.groups = std::vector<int64_t>(40, 8),
                                          .last_ids = std::vector<double>(320, 1),
                                          .width = 100,
                                          .beam_size = 8}));

  // The sources may be in any level, above what later steps have selected.
  OpCase pruned = BeamSearchCase("hypotheses_that_nothing_continues",
                                 {.groups = {3, 1}, .last_ids = {1, 2, 3, 4}, .width = 3});
  pruned.inputs["scores"] = {Ragged(Distinct({4, 3}, 3, -3, -1), {2, 2}, {0, 3, 0, 1})};
  cases.push_back(pruned);
  OpCase lower =
      BeamSearchCase("lower_level", {.groups = {2, 1}, .last_ids = {1, 2, 3}, .width = 3});
  lower.inputs["scores"] = {Ragged(Distinct({3, 3}, 3, -3, -1), {2}, {2, 1})};
  lower.attrs["level"] = 1;
  cases.push_back(lower);
  OpCase one_level =
      BeamSearchCase("one_level", {.groups = {2, 1}, .last_ids = {1, 2, 3}, .width = 3});
  one_level.inputs["scores"] = {Ragged(Distinct({3, 3}, 3, -3, -1), {2, 1})};
  cases.push_back(one_level);

  // These results are PaddlePaddle's.
  const std::vector<double> half(6, 0.5);
  cases.push_back(Example("equal_scores", 2, half, {4, 2, 5, 2, 1, 3}, {2, 3}, {1, 1}, {0, 0, 2}));
  cases.push_back(Example("equal_scores_in_a_larger_beam", 4, half, {4, 2, 5, 2, 1, 3},
                          {4, 2, 1, 3}, {0, 1, 1, 1}, {0, 1, 4}));

  OpCase benchmark = BeamSearchCase("benchmark", {.groups = std::vector<int64_t>(64, 4),
                                                  .last_ids = std::vector<double>(256, 1),
                                                  .width = 4,
                                                  .beam_size = 4});
  benchmark.benchmark_only = true;
  cases.push_back(benchmark);
}

}  // namespace skiff::harness
