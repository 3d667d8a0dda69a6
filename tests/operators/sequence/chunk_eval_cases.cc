#include <set>
#include <string>
#include <tuple>

#include "tests/operators/sequence/crf_reference.h"

namespace skiff::harness {
namespace {

struct ChunkScheme {
  int32_t types;
  std::string name;
  std::vector<int32_t> excluded;

  // The letters of the positions of a tag, of B, I, E and S.
  std::string Positions() const {
    if (name == "IOB") return "BI";
    if (name == "IOE") return "IE";
    if (name == "IOBES") return "BIES";
    return "I";
  }
  int64_t Outside() const { return types * static_cast<int64_t>(Positions().size()); }
};

// Begin, end and type of each chunk that counts.
using Chunks = std::set<std::tuple<size_t, size_t, int64_t>>;

Chunks ChunksOf(const Rows& rows, const ChunkScheme& scheme) {
  const std::string positions = scheme.Positions();
  const auto size = static_cast<int64_t>(positions.size());
  Chunks chunks;
  size_t k = 0;
  while (k < rows.size()) {
    const auto tag_at = [&](size_t row) { return static_cast<int64_t>(rows[row][0]); };
    const int64_t type = tag_at(k) / size;
    const auto position_at = [&](size_t row) {
      return positions[static_cast<size_t>(tag_at(row) % size)];
    };
    const size_t begin = k++;
    if (type == scheme.types) continue;
    // A chunk goes on with rows of its type up to an end, or to the next begin.
    while (k < rows.size() && tag_at(k) / size == type && position_at(k - 1) != 'E' &&
           position_at(k - 1) != 'S' && position_at(k) != 'B' && position_at(k) != 'S') {
      ++k;
    }
    if (std::ranges::count(scheme.excluded, type) == 0) chunks.insert({begin, k, type});
  }
  return chunks;
}

Arrays ChunkEvalReference(const Arrays& inputs, const ChunkScheme& scheme) {
  const Array* lengths = inputs.contains("SeqLength") ? &inputs.at("SeqLength")[0] : nullptr;
  const std::vector<Rows> inferred = TaggedSequences(inputs.at("Inference")[0], lengths);
  const std::vector<Rows> labels = TaggedSequences(inputs.at("Label")[0], lengths);
  double inferred_count = 0, label_count = 0, correct = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const Chunks found = ChunksOf(inferred[i], scheme);
    const Chunks expected = ChunksOf(labels[i], scheme);
    inferred_count += static_cast<double>(found.size());
    label_count += static_cast<double>(expected.size());
    for (const auto& chunk : found) correct += expected.contains(chunk) ? 1 : 0;
  }
  const double precision = inferred_count == 0 ? 0 : correct / inferred_count;
  const double recall = label_count == 0 ? 0 : correct / label_count;
  const double f1 = correct == 0 ? 0 : 2 * precision * recall / (precision + recall);
  const auto number = [](double value, DType dtype) {
    return std::vector<Array>{Values({1}, {value}, dtype)};
  };
  return {{"Precision", number(precision, DType::kFloat32)},
          {"Recall", number(recall, DType::kFloat32)},
          {"F1-Score", number(f1, DType::kFloat32)},
          {"NumInferChunks", number(inferred_count, DType::kInt64)},
          {"NumLabelChunks", number(label_count, DType::kInt64)},
          {"NumCorrectChunks", number(correct, DType::kInt64)}};
}

OpCase ChunkCase(const std::string& name, Array inference, Array label, const ChunkScheme& scheme) {
  return {.name = name,
          .type = "chunk_eval",
          .inputs = {{"Inference", {std::move(inference)}}, {"Label", {std::move(label)}}},
          .attrs = {{"num_chunk_types", scheme.types},
                    {"chunk_scheme", scheme.name},
                    {"excluded_chunk_types", scheme.excluded}},
          .reference = [=](const Arrays& inputs) { return ChunkEvalReference(inputs, scheme); },
          .outputs = {{"Precision", 1},
                      {"Recall", 1},
                      {"F1-Score", 1},
                      {"NumInferChunks", 1},
                      {"NumLabelChunks", 1},
                      {"NumCorrectChunks", 1}},
          // Shares are float32 whatever the run is.
          .dtypes = {DType::kFloat32}};
}

// Labels, and an inference that has most of their tags.
OpCase RaggedChunkCase(const std::string& name, const std::vector<int64_t>& lengths,
                       const ChunkScheme& scheme) {
  const int64_t rows = Lengths{"", lengths}.rows();
  const Array label = Integers({rows, 1}, 1, 0, scheme.Outside() + 1);
  const Array other = Integers({rows, 1}, 2, 0, scheme.Outside() + 1);
  Array inference = label;
  for (size_t i = 0; i < inference.values.size(); i += 3) inference.values[i] = other.values[i];
  return ChunkCase(name, Ragged(inference, lengths), Ragged(label, lengths), scheme);
}

}  // namespace

void AddChunkEvalCases(CaseList& cases) {
  AddCasesOfLengths(cases, "", [](const Lengths& lengths) {
    return RaggedChunkCase("", lengths.each, {2, "IOB", {}});
  });
  for (const std::string scheme : {"IOB", "IOE", "IOBES", "plain"}) {
    for (const int32_t types : {1, 3}) {
      cases.push_back(
          RaggedChunkCase(scheme + std::to_string(types), {40, 1, 60}, {types, scheme, {}}));
    }
    cases.push_back(RaggedChunkCase(scheme + "_excluded", {40, 1, 60}, {4, scheme, {1, 3}}));
  }
  const ChunkScheme scheme = {2, "IOB", {}};
  cases.push_back(
      ChunkCase("padded", Integers({3, 5}, 3, 0, 5), Integers({3, 5}, 4, 0, 5), scheme));
  cases.back().inputs["SeqLength"] = {Values({3}, {5, 0, 3}, DType::kInt64)};
  cases.push_back(ChunkCase("padded_columns", Integers({2, 5, 1}, 3, 0, 5),
                            Integers({2, 5, 1}, 4, 0, 5), scheme));
  cases.back().inputs["SeqLength"] = {Values({2, 1}, {2, 5}, DType::kInt64)};
  cases.push_back(ChunkCase("padded_without_sequences", Integers({0, 5}, 3, 0, 5),
                            Integers({0, 5}, 4, 0, 5), scheme));
  cases.back().inputs["SeqLength"] = {Values({0}, {}, DType::kInt64)};
}

}  // namespace skiff::harness
