#include "tests/operators/tensor/coordinates.h"

namespace skiff::harness {

void AddPixelShuffleCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const Array& x, int32_t factor, bool nhwc) {
    OpCase made{
        .name = name,
        .type = "pixel_shuffle",
        .inputs = {{"X", {x}}},
        .attrs = {{"upscale_factor", factor}, {"data_format", std::string(nhwc ? "NHWC" : "NCHW")}},
        .outputs = {{"Out", 1}},
        .gradients = {"X"}};
    if (x.fixed_dtype) made.gradients.clear();
    made.reference = [factor, nhwc](const Arrays& inputs) {
      const Array& from = inputs.at("X")[0];
      const size_t channel = nhwc ? 3 : 1;
      const size_t row = nhwc ? 1 : 2;
      Shape shape = from.shape;
      shape[static_cast<int>(channel)] /= factor * factor;
      shape[static_cast<int>(row)] *= factor;
      shape[static_cast<int>(row) + 1] *= factor;
      const Array out = Generated(shape, [&](std::vector<int64_t> at) {
        const int64_t i = at[row] % factor;
        const int64_t j = at[row + 1] % factor;
        at[channel] = (at[channel] * factor + i) * factor + j;
        at[row] /= factor;
        at[row + 1] /= factor;
        return from.values[IndexOf(from.shape, at)];
      });
      return Arrays{{"Out", {TypedLike(out, from)}}};
    };
    cases.push_back(std::move(made));
  };
  for (const bool nhwc : {false, true}) {
    const std::string suffix = nhwc ? "_nhwc" : "_nchw";
    const auto shape = [nhwc](int64_t n, int64_t c, int64_t h, int64_t w) {
      return nhwc ? Shape{n, h, w, c} : Shape{n, c, h, w};
    };
    add("by_two" + suffix, Uniform(shape(2, 12, 3, 5), 1), 2, nhwc);
    add("by_three" + suffix, Uniform(shape(1, 18, 2, 2), 2), 3, nhwc);
    add("by_one" + suffix, Uniform(shape(2, 3, 2, 4), 3), 1, nhwc);
    add("no_images" + suffix, Uniform(shape(0, 4, 3, 3), 4), 2, nhwc);
    add("int64" + suffix, Integers(shape(1, 8, 2, 3), 5, -9, 9), 2, nhwc);
    add("large" + suffix, Uniform(shape(2, 36, 33, 31), 6), 2, nhwc);
    cases.back().gradients.clear();
  }
}

}  // namespace skiff::harness
