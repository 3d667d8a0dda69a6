#include "tests/operators/sequence/crf_reference.h"

namespace skiff::harness {
namespace {

Arrays CrfDecodingReference(const Arrays& inputs) {
  const Array& x = inputs.at("Emission")[0];
  const Rows transition = RowsOf(inputs.at("Transition")[0]);
  const Array* lengths = inputs.contains("Length") ? &inputs.at("Length")[0] : nullptr;
  const std::vector<Rows> emission = TaggedSequences(x, lengths);
  std::vector<Rows> labels;
  if (inputs.contains("Label")) labels = TaggedSequences(inputs.at("Label")[0], lengths);
  std::vector<Rows> paths(emission.size());
  for (size_t i = 0; i < emission.size(); ++i) {
    if (emission[i].empty()) continue;
    for (const size_t tag : BestPath(emission[i], transition)) {
      const auto value = static_cast<double>(tag);
      const bool is_label = !labels.empty() && labels[i][paths[i].size()][0] == value;
      paths[i].push_back({labels.empty() ? value : is_label ? 1.0 : 0.0});
    }
  }
  const Shape shape = {x.shape[0], lengths == nullptr ? 1 : x.shape[1]};
  Array like = Values(shape, std::vector<double>(static_cast<size_t>(shape.element_count()), 0),
                      DType::kInt64);
  // A tag is one number, so the last dim of padded tags is no width.
  const Shape columns = {shape[0], shape[1], 1};
  if (lengths != nullptr) like.shape = columns;
  Array path = WithTaggedSequences(like, paths, lengths != nullptr);
  path.shape = shape;
  path.lod = x.lod;
  return {{"ViterbiPath", {path}}};
}

OpCase DecodingCase(const std::string& name, Array emission) {
  const int64_t tags = emission.shape[emission.shape.rank() - 1];
  return {.name = name,
          .type = "crf_decoding",
          .inputs = {{"Emission", {std::move(emission)}},
                     {"Transition", {Uniform({tags + 2, tags}, 3)}}},
          .attrs = {},
          .reference = CrfDecodingReference,
          .outputs = {{"ViterbiPath", 1}}};
}

OpCase PaddedDecodingCase(const std::string& name, const std::vector<double>& lengths,
                          int64_t padded) {
  const auto count = static_cast<int64_t>(lengths.size());
  OpCase made = DecodingCase(name, Uniform({count, padded, 4}, 4));
  made.inputs["Length"] = {Values({count, 1}, lengths, DType::kInt64)};
  return made;
}

}  // namespace

void AddCrfDecodingCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    const int64_t tags = lengths.rows() > 1000 ? 57 : 4;
    return DecodingCase("", Ragged(Uniform({lengths.rows(), tags}, 1), lengths.each));
  });
  AddCasesOfLengths(cases, "label_", [](const Lengths& lengths) {
    OpCase made = DecodingCase("", Ragged(Uniform({lengths.rows(), 3}, 1), lengths.each));
    made.inputs["Label"] = {Ragged(Integers({lengths.rows(), 1}, 2, 0, 3), lengths.each)};
    return made;
  });
  cases.push_back(DecodingCase("one_tag", Ragged(Uniform({3, 1}, 5), {1, 2})));
  const Array zeros = Ragged(Values({5, 3}, std::vector<double>(15, 0)), {3, 2});
  cases.push_back(DecodingCase("equal_scores", zeros));
  cases.back().inputs["Transition"] = {Values({5, 3}, std::vector<double>(15, 0))};
  cases.push_back(
      DecodingCase("large_scores", Ragged(Uniform({900, 3}, 6, -100, 100), {500, 400})));
  cases.push_back(PaddedDecodingCase("padded", {2, 4, 1}, 4));
  cases.push_back(PaddedDecodingCase("padded_without_rows", {0, 3, 0}, 4));
  cases.push_back(PaddedDecodingCase("padded_without_sequences", {}, 4));
  cases.push_back(PaddedDecodingCase("padded_to_nothing", {0, 0}, 0));
  cases.push_back(PaddedDecodingCase("padded_label", {2, 4, 1}, 4));
  cases.back().inputs["Label"] = {Integers({3, 4}, 2, 0, 2)};
}

}  // namespace skiff::harness
