#include <algorithm>

#include "tests/operators/half_case.h"
#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

Arrays SequenceUnpadReference(const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array& lengths = inputs.at("Length")[0];
  Array like = x;
  like.shape = {0};
  for (int axis = 2; axis < x.shape.rank(); ++axis) like.shape.Append(x.shape[axis]);
  if (x.shape.rank() == 2) like.shape.Append(1);
  // All rows of X one after the other.
  Array flat = x;
  flat.shape = like.shape;
  flat.shape[0] = x.shape[0] * x.shape[1];
  const Rows rows = RowsOf(flat);
  std::vector<Rows> sequences;
  for (size_t i = 0; i < lengths.values.size(); ++i) {
    const auto first = rows.begin() + static_cast<int64_t>(i) * x.shape[1];
    sequences.emplace_back(first, first + static_cast<int64_t>(lengths.values[i]));
  }
  return {{"Out", {Joined(sequences, like)}}};
}

OpCase SequenceUnpadCase(const std::string& name, Array x, std::vector<double> lengths) {
  const auto count = static_cast<int64_t>(lengths.size());
  return {.name = name,
          .type = "sequence_unpad",
          .inputs = {{"X", {std::move(x)}},
                     {"Length", {Values({count}, std::move(lengths), DType::kInt64)}}},
          .reference = SequenceUnpadReference,
          .outputs = {{"Out", 1}},
          .gradients = {"X"}};
}

// As in programs that Fluid wrote: the LoD of Out@GRAD has the lengths.
OpCase GradientWithoutLength(const std::string& name, Array x, Array gradient) {
  const auto reference = [](const Arrays& inputs) {
    Array x_gradient = inputs.at("X")[0];
    const auto width = static_cast<size_t>(x_gradient.shape.element_count(2, 3));
    const auto padded = static_cast<size_t>(x_gradient.shape[1]);
    std::ranges::fill(x_gradient.values, 0.0);
    size_t first = 0;  // number of X@GRAD[i]
    for (const Rows& rows : SequencesOf(inputs.at("Out@GRAD")[0])) {
      size_t at = first;
      for (const Row& row : rows) {
        for (const double value : row) x_gradient.values[at++] = value;
      }
      first += padded * width;
    }
    return Arrays{{"X@GRAD", {x_gradient}}};
  };
  return {.name = name,
          .type = "sequence_unpad_grad",
          .inputs = {{"X", {std::move(x)}}, {"Out@GRAD", {std::move(gradient)}}},
          .reference = reference,
          .outputs = {{"X@GRAD", 1}}};
}

}  // namespace

void AddSequenceUnpadCases(CaseList& cases) {
  cases.push_back(SequenceUnpadCase("matrix", Uniform({3, 5}, 1), {2, 3, 4}));
  cases.push_back(SequenceUnpadCase("rows", Uniform({3, 5, 2}, 2), {5, 1, 2}));
  cases.push_back(InHalf(cases.back()));
  cases.push_back(SequenceUnpadCase("images", Uniform({2, 3, 2, 2}, 3), {3, 2}));
  cases.push_back(SequenceUnpadCase("some_without_rows", Uniform({4, 3, 2}, 4), {0, 3, 0, 1}));
  cases.push_back(SequenceUnpadCase("nothing", Uniform({2, 3, 2}, 5), {0, 0}));
  cases.push_back(SequenceUnpadCase("without_padding", Uniform({2, 3, 2}, 6), {3, 3}));
  cases.push_back(SequenceUnpadCase("one", Uniform({1, 1}, 7), {1}));
  cases.push_back(SequenceUnpadCase("padding_only", Uniform({2, 0, 3}, 8), {0, 0}));
  cases.push_back(SequenceUnpadCase("many", Uniform({30, 20, 65}, 9), std::vector<double>(30, 17)));
  std::vector<double> lengths;
  for (int i = 0; i < 600; ++i) lengths.push_back(i % 3);
  cases.push_back(SequenceUnpadCase("many_sequences", Uniform({600, 2}, 12), lengths));
  cases.push_back(GradientWithoutLength("without_length", Uniform({4, 3, 2}, 13),
                                        Ragged(Uniform({5, 2}, 14), {0, 3, 0, 2})));
  cases.push_back(InHalf(cases.back()));
  cases.push_back(InHalf(GradientWithoutLength("odd_rows_without_length", Uniform({2, 3, 3}, 15),
                                               Ragged(Uniform({4, 3}, 16), {3, 1}))));
  cases.back().inputs["Length"] = {Values({2}, {3, 1}, DType::kInt64)};
  cases.back().name = "gradient_of_odd_rows_in_half";
  cases.push_back(SequenceUnpadCase("int64", Integers({2, 3}, 10, -9, 9), {2, 1}));
  cases.back().gradients.clear();
  cases.push_back(
      SequenceUnpadCase("benchmark", Uniform({256, 48, 128}, 11), std::vector<double>(256, 32)));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
