#include <string>
#include <utility>
#include <vector>

#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

struct CtcAlignSettings {
  int32_t blank = 0;
  bool merge_repeated = true;
  int32_t padding_value = 0;
};

std::vector<double> AlignedIds(const std::vector<double>& path, const CtcAlignSettings& settings) {
  std::vector<double> merged;
  for (const double id : path) {
    if (!settings.merge_repeated || merged.empty() || merged.back() != id) merged.push_back(id);
  }
  std::erase(merged, static_cast<double>(settings.blank));
  return merged;
}

Arrays RaggedCtcAlignReference(const Arrays& inputs, const CtcAlignSettings& settings) {
  const Array& input = inputs.at("Input")[0];
  std::vector<Rows> sequences = SequencesOf(input);
  for (Rows& rows : sequences) {
    std::vector<double> path;
    for (const Row& row : rows) path.push_back(row[0]);
    rows.clear();
    for (const double id : AlignedIds(path, settings)) rows.push_back({id});
  }
  return {{"Output", {Joined(sequences, input)}}};
}

Arrays PaddedCtcAlignReference(const Arrays& inputs, const CtcAlignSettings& settings) {
  const Array& input = inputs.at("Input")[0];
  const Rows rows = RowsOf(input);
  Array output = input;
  output.values.clear();
  std::vector<double> lengths;
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto steps = static_cast<int64_t>(inputs.at("InputLength")[0].values[i]);
    std::vector<double> ids =
        AlignedIds(std::vector<double>(rows[i].begin(), rows[i].begin() + steps), settings);
    lengths.push_back(static_cast<double>(ids.size()));
    ids.resize(rows[i].size(), settings.padding_value);
    for (const double id : ids) output.values.push_back(id);
  }
  const Array length = Values({static_cast<int64_t>(rows.size()), 1}, lengths, input.dtype);
  return {{"Output", {output}}, {"OutputLength", {length}}};
}

OpCase RaggedCtcAlignCase(Array input, const CtcAlignSettings& settings = {}) {
  return {
      .name = "",
      .type = "ctc_align",
      .inputs = {{"Input", {std::move(input)}}},
      .attrs = {{"blank", settings.blank}, {"merge_repeated", settings.merge_repeated}},
      .reference = [=](const Arrays& inputs) { return RaggedCtcAlignReference(inputs, settings); },
      .outputs = {{"Output", 1}}};
}

OpCase PaddedCtcAlignCase(Array input, Array length, const CtcAlignSettings& settings = {}) {
  OpCase made = RaggedCtcAlignCase(std::move(input), settings);
  made.inputs["InputLength"] = {std::move(length)};
  made.attrs["padding_value"] = settings.padding_value;
  made.reference = [=](const Arrays& inputs) { return PaddedCtcAlignReference(inputs, settings); };
  made.outputs = {{"Output", 1}, {"OutputLength", 1}};
  return made;
}

}  // namespace

void AddCtcAlignCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    return RaggedCtcAlignCase(Ragged(Integers({lengths.rows(), 1}, 1, 0, 3), lengths.each));
  });
  const auto add = [&](const std::string& name, OpCase made) {
    cases.push_back(std::move(made));
    cases.back().name = name;
  };
  const Array ids = Ragged(Values({8, 1}, {0, 1, 1, 0, 1, 2, 2, 2}, DType::kInt32), {5, 3});
  add("merged", RaggedCtcAlignCase(ids));
  add("not_merged", RaggedCtcAlignCase(ids, {.merge_repeated = false}));
  add("last_blank", RaggedCtcAlignCase(ids, {.blank = 2}));
  add("only_blanks",
      RaggedCtcAlignCase(Ragged(Values({3, 1}, {4, 4, 4}, DType::kInt64), {1, 2}), {.blank = 4}));
  const Array padded = Integers({4, 7}, 2, 0, 3, DType::kInt64);
  const Array length = Values({4, 1}, {7, 0, 3, 5}, DType::kInt64);
  add("padded", PaddedCtcAlignCase(padded, length));
  add("padded_with_minus_1",
      PaddedCtcAlignCase(padded, Values({4}, {7, 6, 1, 0}, DType::kInt64),
                         {.blank = 1, .merge_repeated = false, .padding_value = -1}));
  add("padded_int32", PaddedCtcAlignCase(Integers({2, 3}, 3, 0, 2, DType::kInt32),
                                         Values({2, 1}, {3, 2}, DType::kInt32)));
  add("no_padded_sequences", PaddedCtcAlignCase(Integers({0, 3}, 4, 0, 2, DType::kInt32),
                                                Values({0, 1}, {}, DType::kInt32)));
}

}  // namespace skiff::harness
