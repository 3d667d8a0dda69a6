#include <algorithm>
#include <string>
#include <vector>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

struct Context {
  int start = 0;
  int length = 1;
  bool is_padded = false;

  int64_t rows_before() const { return std::max(0, -start); }
  int64_t padding_rows() const { return rows_before() + std::max(0, start + length - 1); }
};

Arrays SequenceConvReference(const Context& context, const Arrays& inputs) {
  const Array& x = inputs.at("X")[0];
  const Array& filter = inputs.at("Filter")[0];
  const int64_t width = x.shape[1], out_width = filter.shape[1];
  const std::vector<uint64_t>& offsets = x.lod.back();
  Array out = Values({x.shape[0], out_width},
                     std::vector<double>(static_cast<size_t>(x.shape[0] * out_width)));
  out.lod = x.lod;
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    const auto first = static_cast<int64_t>(offsets[s]),
               last = static_cast<int64_t>(offsets[s + 1]);
    for (int64_t row = first; row < last; ++row) {
      for (int64_t k = 0; k < context.length * width; ++k) {
        const int64_t from = row + context.start + k / width;
        double value = 0;
        if (from >= first && from < last) {
          value = x.values[static_cast<size_t>(from * width + k % width)];
        } else if (context.is_padded) {
          const int64_t beyond = from < first ? from - first : from - last;
          value = inputs.at("PaddingData")[0].values[static_cast<size_t>(
              (context.rows_before() + beyond) * width + k % width)];
        }
        for (int64_t j = 0; j < out_width; ++j) {
          out.values[static_cast<size_t>(row * out_width + j)] +=
              value * filter.values[static_cast<size_t>(k * out_width + j)];
        }
      }
    }
  }
  return {{"Out", {out}}};
}

OpCase SequenceConvCase(const std::string& name, const Context& context, Array x,
                        int64_t out_width) {
  const int64_t width = x.shape[1];
  OpCase op_case;
  op_case.name = name;
  op_case.type = "sequence_conv";
  op_case.inputs = {{"X", {std::move(x)}},
                    {"Filter", {Uniform({context.length * width, out_width}, 2)}}};
  op_case.attrs = {{"contextStart", context.start},
                   {"contextLength", context.length},
                   {"paddingTrainable", context.is_padded}};
  op_case.reference = [context](const Arrays& inputs) {
    return SequenceConvReference(context, inputs);
  };
  op_case.outputs = {{"Out", 1}};
  op_case.gradients = {"X", "Filter"};
  if (context.is_padded) {
    op_case.inputs["PaddingData"] = {Uniform({context.padding_rows(), width}, 3)};
    op_case.gradients.push_back("PaddingData");
  }
  return op_case;
}

}  // namespace

void AddSequenceConvCases(CaseList& cases) {
  const auto rows = [] { return Ragged(Uniform({9, 3}, 1), {4, 1, 0, 2, 2}); };
  cases.push_back(SequenceConvCase("one_row", {}, rows(), 4));
  cases.push_back(SequenceConvCase("around", {.start = -1, .length = 3}, rows(), 4));
  cases.push_back(SequenceConvCase("before", {.start = -2, .length = 2}, rows(), 4));
  cases.push_back(SequenceConvCase("far_before", {.start = -4, .length = 2}, rows(), 4));
  cases.push_back(SequenceConvCase("after", {.start = 1, .length = 2}, rows(), 4));
  cases.push_back(SequenceConvCase("longer_than_all", {.start = -3, .length = 9}, rows(), 2));
  cases.push_back(
      SequenceConvCase("padding_around", {.start = -1, .length = 3, .is_padded = true}, rows(), 4));
  cases.push_back(SequenceConvCase("padding_far_before",
                                   {.start = -4, .length = 2, .is_padded = true}, rows(), 4));
  cases.push_back(
      SequenceConvCase("padding_after", {.start = 2, .length = 2, .is_padded = true}, rows(), 4));
  cases.push_back(SequenceConvCase("padding_longer_than_all",
                                   {.start = -3, .length = 9, .is_padded = true}, rows(), 2));
  cases.push_back(SequenceConvCase("equal", {.start = -1, .length = 2},
                                   Ragged(Uniform({6, 5}, 1), std::vector<int64_t>{2, 2, 2}), 3));
  cases.push_back(SequenceConvCase("two_levels", {.start = -1, .length = 3},
                                   Ragged(Uniform({7, 2}, 1), {1, 0, 2}, {3, 3, 1}), 3));
  cases.push_back(SequenceConvCase("no_rows", {.start = -1, .length = 3},
                                   Ragged(Uniform({0, 3}, 1), std::vector<int64_t>{0, 0}), 4));
  // Several blocks of contexts, the last of them smaller.
  cases.push_back(SequenceConvCase("blocks", {.start = -1, .length = 2, .is_padded = true},
                                   Ragged(Uniform({150, 1040}, 1), {1, 130, 19}), 1));
  // Sums of 2,080 products.
  cases.back().float32_tolerance = 1e-4;
  // A device cuts the sums of the filter's gradient.
  cases.push_back(SequenceConvCase("many_rows", {.start = -1, .length = 2},
                                   Ragged(Uniform({1100, 3}, 1), {599, 1, 500}), 4));
  cases.back().float32_tolerance = 1e-4;
  cases.push_back(SequenceConvCase("benchmark", {.start = -1, .length = 3},
                                   Ragged(Uniform({4096, 128}, 1), std::vector<int64_t>(64, 64)),
                                   128));
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
