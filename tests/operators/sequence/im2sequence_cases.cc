#include "tests/operators/sequence/sequences.h"

namespace skiff::harness {
namespace {

using Im2sequenceSizes = std::vector<int32_t>;

struct Im2sequenceSetting {
  Im2sequenceSizes kernels;
  Im2sequenceSizes strides = {1, 1};
  Im2sequenceSizes paddings = {0, 0, 0, 0};  // up, left, down, right
};

// The element of an image, 0 outside of it.
double At(const Array& x, int64_t image, int64_t channel, int64_t row, int64_t column) {
  if (row < 0 || row >= x.shape[2] || column < 0 || column >= x.shape[3]) return 0;
  const int64_t index = ((image * x.shape[1] + channel) * x.shape[2] + row) * x.shape[3] + column;
  return x.values[static_cast<size_t>(index)];
}

Arrays Im2sequenceReference(const Arrays& inputs, const Im2sequenceSetting& of) {
  const Array& x = inputs.at("X")[0];
  Row values;
  std::vector<int64_t> lengths;
  int64_t rows = 0;
  for (int64_t image = 0; image < x.shape[0]; ++image) {
    const int64_t rows_before = rows;
    for (int64_t top = -of.paddings[0]; top + of.kernels[0] <= x.shape[2] + of.paddings[2];
         top += of.strides[0]) {
      for (int64_t left = -of.paddings[1]; left + of.kernels[1] <= x.shape[3] + of.paddings[3];
           left += of.strides[1]) {
        ++rows;
        for (int64_t channel = 0; channel < x.shape[1]; ++channel) {
          for (int64_t i = 0; i < of.kernels[0]; ++i) {
            for (int64_t j = 0; j < of.kernels[1]; ++j)
              values.push_back(At(x, image, channel, top + i, left + j));
          }
        }
      }
    }
    lengths.push_back(rows - rows_before);
  }
  const int64_t width = x.shape[1] * of.kernels[0] * of.kernels[1];
  return {{"Out", {Ragged(Values({rows, width}, values), lengths)}}};
}

OpCase Im2sequenceCase(const std::string& name, Array x, const Im2sequenceSetting& setting) {
  OpCase made{
      .name = name,
      .type = "im2sequence",
      .inputs = {{"X", {std::move(x)}}},
      .attrs = {{"kernels", setting.kernels}},
      .reference = [=](const Arrays& inputs) { return Im2sequenceReference(inputs, setting); },
      .outputs = {{"Out", 1}},
      .gradients = {"X"}};
  if (setting.strides != Im2sequenceSizes{1, 1}) made.attrs["strides"] = setting.strides;
  if (setting.paddings != Im2sequenceSizes{0, 0, 0, 0}) made.attrs["paddings"] = setting.paddings;
  return made;
}

}  // namespace

void AddIm2sequenceCases(CaseList& cases) {
  const auto add = [&](const std::string& name, Array x, const Im2sequenceSetting& setting) {
    cases.push_back(Im2sequenceCase(name, std::move(x), setting));
  };
  add("squares", Uniform({2, 2, 3, 3}, 1), {.kernels = {2, 2}});
  add("one_image", Uniform({1, 2, 3, 3}, 14), {.kernels = {2, 2}});
  add("strips", Uniform({2, 1, 4, 5}, 2), {.kernels = {4, 1}});
  add("apart", Uniform({1, 2, 5, 7}, 3), {.kernels = {2, 3}, .strides = {2, 3}});
  add("gaps", Uniform({1, 1, 5, 7}, 4), {.kernels = {1, 2}, .strides = {3, 4}});
  add("padded", Uniform({2, 2, 3, 4}, 5), {.kernels = {2, 3}, .paddings = {1, 2, 0, 1}});
  add("padded_apart", Uniform({2, 1, 4, 4}, 6),
      {.kernels = {3, 2}, .strides = {2, 2}, .paddings = {0, 1, 2, 3}});
  add("wider_than_the_image", Uniform({1, 1, 2, 2}, 7),
      {.kernels = {5, 4}, .paddings = {2, 1, 1, 2}});
  add("only_padding_in_some", Uniform({1, 1, 2, 2}, 8),
      {.kernels = {2, 2}, .paddings = {3, 3, 3, 3}});
  add("one_number", Uniform({1, 1, 1, 1}, 9), {.kernels = {1, 1}});
  add("large", Uniform({3, 3, 20, 31}, 12), {.kernels = {3, 3}, .paddings = {1, 1, 1, 1}});
  add("benchmark", Uniform({16, 64, 8, 100}, 13), {.kernels = {8, 1}});
  cases.back().benchmark_only = true;
}

}  // namespace skiff::harness
